/* How much shared memory an operation needs for its elements to reach other threads, and where plans are kept. */
#include "gpu/plans.h"

Arena *tt_plans_arena(const Op *op) { return op->parent->function->module->arena; }

void **tt_plan_slot(const Op *op) { return tt_map_slot_ptr(&op->parent->function->module->plans, op); }

static int64_t padded_bytes(const Value *value)
{
    return tt_byte_width(value->type) * (1ll << tt_layout_out_total(value->layout));
}

static int64_t bytes(const Value *value) { return value->type->count * tt_byte_width(value->type); }

static int64_t conversion_bytes(const Op *op)
{
    const Value *from = tt_operand(op, 0), *to = op->results[0];
    ConvertPlan plan = tt_layout_plan_conversion(from->layout, to->layout, tt_byte_width(from->type), false);
    return plan.kind == CONVERT_SHARED ? padded_bytes(from) : 0;
}

int tt_least_halving_bit(const Type *type)
{
    enum { VECTOR = 16 };
    return tt_log2(TT_MAX(1, VECTOR / tt_byte_width(type)));
}

int64_t tt_half_scratch(const Op *op, int64_t bytes)
{
    enum { LEAST = 8 << 10 };
    if (op->opcode != OP_convert_layout || bytes / 2 < LEAST)
        return 0;
    const Value *value = tt_operand(op, 0);
    LinearLayout from = *value->layout, to = *op->results[0]->layout;
    int unused;
    for (int64_t room = padded_bytes(value); room >= bytes; room /= 2) {
        int bit = tt_layout_halving_bit(&from, &to, tt_least_halving_bit(value->type));
        if (bit < 0)
            return 0;
        from = tt_layout_half(&from, bit, &unused);
        to = tt_layout_half(&to, bit, &unused);
    }
    return bytes / 2;
}

bool tt_moves_elements(const Op *op)
{
    const Value *operand = tt_operand(op, 0), *result = op->results[0];
    if (!operand->layout || !result->layout)
        return false;
    return tt_layout_forward(op, 0, operand->layout) != result->layout &&
           tt_layout_backward(op, 0, result->layout) != operand->layout;
}

/* Bytes through which threads with copies of an element get what an atomic gave for it. */
static int64_t atomic_scratch(const Op *op, const GpuOptions *options)
{
    const Value *result = op->results[0];
    uint32_t warps = result->layout ? tt_layout_replication(result->layout, LAYOUT_WARP)
                                    : (uint32_t)options->num_warps - 1;
    if (!tt_has_uses(result) || !warps)
        return 0;
    return (result->layout ? 1ll << tt_layout_out_total(result->layout) : 1) * tt_byte_width(result->type);
}

/* At a distance, every thread's registers; else the elements. */
static int64_t gather_bytes(const Op *op, const GpuOptions *options)
{
    DistancePlan plan;
    const Value *source = tt_operand(op, 0);
    if (!tt_plan_distance(op, &plan))
        return bytes(source);
    int64_t threads = (int64_t)TT_LANES * options->num_warps;
    return plan.warps ? (threads << source->layout->in_bits[LAYOUT_REGISTER]) * tt_byte_width(source->type)
                      : 0;
}

int64_t tt_scratch_bytes(const Op *op, const GpuOptions *options)
{
    switch (op->opcode) {
    case OP_convert_layout:
        return conversion_bytes(op);
    case OP_reduce:
    case OP_extract:
        return tt_plan_reduce(op, options)->bytes;
    case OP_scan:
        return tt_plan_scan(op)->bytes;
    case OP_smem_alloc:
        return tt_buffer_bytes(op->results[0]);
    case OP_gather:
        return gather_bytes(op, options);
    case OP_histogram:
        return bytes(op->results[0]);
    case OP_atomic_rmw:
    case OP_atomic_cas:
    case OP_clock:
        return atomic_scratch(op, options);
    default:
        if (!tt_has(op, SHAPE) || !tt_moves_elements(op))
            return 0;
        return TT_MAX(bytes(tt_operand(op, 0)), bytes(op->results[0]));
    }
}

int64_t tt_buffer_bytes(const Value *buffer)
{
    int64_t slot = (int64_t)tt_byte_width(buffer->type) << tt_layout_out_total(buffer->layout);
    return slot * buffer->type->slots;
}

int64_t tt_buffer_alignment(const Value *buffer)
{
    enum { LEAST = 16, PATTERN = 1024 /* in which rows are exchanged */ };
    return TT_MAX(LEAST, TT_MIN(PATTERN, tt_buffer_bytes(buffer) / buffer->type->slots));
}

int64_t tt_scratch_offset(const Op *op)
{
    const Attr *attr = tt_find_attr(op, ATTR_scratch);
    return attr ? attr->ints[0] : 0;
}

static void note_scratch(Op *op, void *context)
{
    int *bytes = context;
    const Attr *scratch = tt_find_attr(op, ATTR_scratch);
    if (scratch)
        *bytes = TT_MAX(*bytes, (int)(scratch->ints[0] + scratch->ints[1]));
}

int tt_shared_bytes(const Module *module)
{
    int bytes = 0;
    tt_walk(module->functions->body, note_scratch, &bytes);
    return bytes;
}

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": per block, with the opt-in. */
int64_t tt_shared_limit(int sm)
{
    switch (sm) {
    case 75:
        return 64 << 10;
    case 80:
    case 87:
        return 163 << 10;
    case 86:
    case 88: /* which is not there: the least of its generation */
    case 89:
        return 99 << 10;
    default:
        return sm < 75 ? 48 << 10 : sm >= 120 ? 99 << 10 : TT_SM90_SHARED;
    }
}

int64_t tt_programs_by_shared(int sm, int64_t bytes)
{
    return (tt_shared_limit(sm) + TT_RESERVED_SHARED) / (bytes + TT_RESERVED_SHARED);
}
