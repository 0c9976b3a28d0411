/* Tiles of which a loop with products reads a few bytes of each row in an iteration, and the next few in the next one:
 * scales of microscaled operands, a byte for 32 elements. Each such load goes to as many lines as there are rows, for a byte or
 * two of each, and what else a thread reads from shared memory waits behind it. So the aligned 8 bytes around an element are
 * loaded, and kept for the iterations whose elements lie in them: `window` is loaded anew where an element has passed into
 * the next one.
 *
 * What else lies in those bytes is read, but not used. It is there to be read: memory is mapped in pages, and protected in
 * them. The simulator reads what there is of it (ATTR_around), and holds it against nobody who writes there. */
#include "analysis/analysis.h"
#include "gpu/passes.h"
#include "opt/pass.h"

enum {
    WINDOW = 8,        /* bytes */
    MOST_STEP = 4,     /* bytes that an iteration goes on by: a window lasts for two at least */
    LEAST_ROWS = 64,   /* that are worth it */
    MOST_ELEMENTS = 4, /* of a thread, each with a window of its own */
};

typedef struct Windows {
    Module *module;
    const GpuOptions *options;
    Arena *scratch;
    AxisInfos *axis_infos; /* NULL until a loop has products */
    Loop loop;
    bool changed;
} Windows;

/* Bytes that the load's pointers go on by in each iteration; 0: not known, or none. */
static int64_t bytes_of_step(const Windows *w, const Op *load)
{
    int64_t step;
    const Value *base = tt_moving_base(&w->loop, tt_operand(load, 0));
    const Value *grows = base ? tt_step_of(&w->loop, tt_operand(base->op, 1)) : NULL;
    return grows && tt_constant_int(grows, &step) ? step * tt_byte_width(load->results[0]->type) : 0;
}

/* Rows: of neighbours in memory. */
static int64_t rows_of(const Windows *w, const Op *load)
{
    const AxisInfo *info = tt_axis_info(w->axis_infos, tt_operand(load, 0));
    int axis = tt_fastest_axis(w->axis_infos, load);
    return load->results[0]->type->count /
           TT_MIN(info->contiguity[axis], load->results[0]->type->shape[axis]);
}

static bool is_worth_it(const Windows *w, const Op *load)
{
    const Type *type = load->results[0]->type;
    int64_t threads = (int64_t)TT_LANES * w->options->num_warps;
    if (!tt_is_plain_load(load) || !tt_is_tile(type) || tt_is_bool(type) || tt_byte_width(type) > 2 ||
        type->count > MOST_ELEMENTS * threads || tt_writes_memory(w->loop.op))
        return false;
    for (int i = 1; i < load->operand_count; i++) /* a mask that stays the same */
        if (tt_is_in_loop(&w->loop, tt_operand(load, i)))
            return false;
    int64_t step = bytes_of_step(w, load);
    return step > 0 && step <= MOST_STEP && rows_of(w, load) >= LEAST_ROWS;
}

static Value *number(Builder *b, const Type *like, const Type *element, int64_t value)
{
    return tt_build_int(b, tt_with_element(b->module, like, element), value);
}

/* The element's bits at the beginning of an integer that is as wide. */
static Value *as_element(Builder *b, Value *bits, const Type *type)
{
    bits = tt_build_cast(b, OP_trunc, bits,
                         tt_scalar_type(b->module, tt_byte_width(type) == 1 ? TT_I8 : TT_I16));
    return tt_element(bits->type) == tt_element(type) ? bits
                                                      : tt_build_cast(b, OP_bitcast, bits, tt_element(type));
}

static void rewrite(Windows *w, Op *load)
{
    Module *m = w->module;
    const Type *type = load->results[0]->type, *i1 = tt_scalar_type(m, TT_I1),
               *i32 = tt_scalar_type(m, TT_I32), *i64 = tt_scalar_type(m, TT_I64),
               *words = tt_with_element(m, type, i64);
    int64_t step = bytes_of_step(w, load);
    Builder before = tt_builder_before(w->loop.op), b = tt_builder_before(load);
    before.loc = b.loc = load->loc;
    int kept = tt_add_carried(&w->loop, tt_build_int(&before, words, 0));
    int begins = tt_add_carried(&w->loop, tt_build_int(&before, i1, 1));
    tt_set_operand(w->loop.yield, begins, tt_build_int(&b, i1, 0));

    Value *address = tt_build_cast(&b, OP_ptr_to_int, tt_operand(load, 0), i64);
    Value *place =
        tt_build2(&b, OP_and, tt_build_cast(&b, OP_trunc, address, i32), number(&b, type, i32, WINDOW - 1));
    Value *passes = tt_build2(&b, OP_lt_u, place, number(&b, type, i32, step));
    Value *first = tt_build_splat(&b, tt_carried(&w->loop, begins), type->shape, type->rank);
    Value *mask = tt_build2(&b, OP_or, passes, first);
    if (load->operand_count > 1)
        mask = tt_build2(&b, OP_and, mask, tt_operand(load, 1));
    Value *start = tt_build2(&b, OP_and, address, number(&b, type, i64, -WINDOW));
    start = tt_build_cast(&b, OP_int_to_ptr, start,
                          tt_ptr_type(m, i64, tt_element(tt_operand(load, 0)->type)->space));
    Value *operands[] = {start, mask, tt_carried(&w->loop, kept)};
    Attr *attrs = tt_attr_int(m, ATTR_around, 1, tt_copy_attrs(m, load->attrs));
    Value *window = tt_build(&b, OP_load, operands, 3, words, attrs);
    window->name = load->results[0]->name;
    tt_set_operand(w->loop.yield, kept, window);

    Value *bits = tt_build2(&b, OP_shl, place, number(&b, type, i32, 3));
    bits = tt_build2(&b, OP_shr_u, window, tt_build_cast(&b, OP_ext_u, bits, i64));
    Value *element = as_element(&b, bits, type);
    if (load->operand_count > 1) {
        Value *other = load->operand_count > 2 ? tt_operand(load, 2)
                       : tt_is_float(type)     ? tt_build_float(&b, type, 0)
                                               : tt_build_int(&b, type, 0);
        element = tt_build3(&b, OP_select, tt_operand(load, 1), element, other);
    }
    tt_replace_op(load, &element);
    w->changed = true;
}

static void visit(Op *op, void *context)
{
    Windows *w = context;
    if (op->opcode != OP_for || !tt_has_dot(op->regions[0]))
        return;
    if (!w->axis_infos)
        w->axis_infos = tt_analyze_axis_info(w->module->functions, w->scratch);
    w->loop = tt_loop(op);
    TT_FOR_OPS_SAFE(load, op->regions[0])
    {
        if (load->opcode == OP_load && !tt_find_attr(load, ATTR_around) && is_worth_it(w, load))
            rewrite(w, load);
    }
}

bool tt_gpu_load_windows(Module *module, const GpuOptions *options, Arena *scratch)
{
    Windows w = {.module = module, .options = options, .scratch = scratch};
    tt_walk(module->functions->body, visit, &w);
    return w.changed;
}
