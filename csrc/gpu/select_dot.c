/* Which instruction multiplies: wgmma of sm_90, mma.sync of the other tensor cores, or multiply-adds of the threads; and
 * where the operands lie. All read theirs from shared memory, in buffers laid out for them; what was computed in the loop,
 * or follows from another product, goes from registers to tensor cores where the instruction takes it there. */
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Staged {
    const Value *value;
    const LinearLayout *layout;
} Staged;

typedef struct Raised {
    const Value *value;
    int64_t units;
} Raised;

typedef struct Selector {
    Module *module;
    const GpuOptions *options;
    Arena *scratch;
    AxisInfos *axis_infos;
    Map buffers;                  /* Staged -> Value*, so that two products of one tile share its buffer */
    Map raised;                   /* Raised -> Value*, likewise */
    TT_VECTOR(Op *) dots, others; /* on tensor cores, and not */
} Selector;

/* ---- which instruction ------------------------------------------------------------------------------------------------------------- */

/* The least K of an instruction: 32 bytes. */
static int64_t instruction_k(const Type *operand)
{
    return operand->element->kind == TT_F64 ? 8 : 32 / tt_byte_width(operand);
}

static bool takes_element(const Op *dot, const GpuOptions *options)
{
    switch (tt_element(tt_operand(dot, 0)->type)->kind) {
    case TT_F16:
        return true;
    case TT_BF16:
        return options->sm >= 80;
    case TT_F32:
        return options->sm >= 80 && !strcmp(tt_string_attr(dot, ATTR_precision, "tf32"), "tf32");
    case TT_F64:
        return options->sm >= 80;
    case TT_I8:
        return true;
    case TT_F8E4M3:
    case TT_F8E5M2:
        return options->sm >= 89;
    default:
        return false;
    }
}

/* How much of K may be added up at once; 0: all. Sums of 8-bit floats keep about 14 bits of the fractions within wgmma. */
static int64_t imprecise_depth(const Op *dot)
{
    const Type *a = tt_operand(dot, 0)->type;
    int64_t most = tt_int_attr(dot, ATTR_max_imprecise, 0), step = instruction_k(a);
    if (!tt_is_fp8(a) || most <= 0 || most > a->shape[1])
        return 0;
    return TT_MAX(step, most / step * step);
}

/* Of 16 bits, and of 8 where these become 16. (From sm_120 on mma.sync has them, too, in PTX of 8.7.) */
static bool has_half_sums(const Op *dot, const GpuOptions *options)
{
    const Type *a = tt_operand(dot, 0)->type;
    bool is_narrow = tt_is_fp8(a) && options->sm >= 90 && options->sm < 120 && !imprecise_depth(dot);
    return tt_element(a)->kind == TT_F16 || is_narrow;
}

/* Columns that one wgmma with such sums has registers for, of what so many threads share, or the launch asked for. */
static int64_t most_columns(const GpuOptions *options, const Type *sum)
{
    int64_t registers = TT_REGISTERS / (TT_LANES * options->num_warps), columns = TT_WGMMA_MOST_COLUMNS;
    if (options->max_registers)
        registers = TT_MIN(registers, options->max_registers);
    while (columns && tt_wgmma_registers(columns, sum) > registers)
        columns /= 2;
    return columns;
}

/* Warps along M, whole warpgroups, and along N, or the other way around of a product that is `turned`; false when the tile
 * is too small for them, or too wide. */
static bool share_by_warpgroups(const Op *dot, const GpuOptions *options, bool turned, int64_t warps[2])
{
    const Type *a = tt_operand(dot, 0)->type, *sum = dot->results[0]->type;
    if (options->sm != 90 || options->num_warps % TT_WARPGROUP || options->strips > 1 || sum->rank != 2)
        return false;
    int64_t m = tt_next_pow2(sum->shape[turned]), n = tt_next_pow2(sum->shape[!turned]),
            most = most_columns(options, sum);
    if (m < TT_WGMMA_ROWS || tt_element(sum)->kind == TT_F64 || tt_next_pow2(a->shape[1]) < instruction_k(a))
        return false;
    warps[0] = TT_MIN(options->num_warps, m / 16);
    while (n * warps[0] / options->num_warps > most && warps[0] > TT_WARPGROUP)
        warps[0] /= 2;
    warps[1] = options->num_warps / warps[0];
    return n / warps[1] >= TT_WGMMA_LEAST_COLUMNS && n / warps[1] <= most;
}

bool tt_fits_wgmma(const Op *dot, const GpuOptions *options, bool turned)
{
    int64_t warps[2];
    return takes_element(dot, options) && share_by_warpgroups(dot, options, turned, warps);
}

/* Does `value` follow from the result of another product, in the registers of the same threads? */
static bool follows_from_product(const Value *value, const Region *region, int depth)
{
    const Op *op = value->op;
    if (!op || op->parent != region || depth > 12)
        return false;
    if (op->opcode == OP_dot || op->opcode == OP_wgmma || op->opcode == OP_wgmma_wait)
        return true;
    if (!tt_has(op, ELEMENTWISE | ONE_LAYOUT))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (tt_is_tile(tt_operand(op, i)->type) && follows_from_product(tt_operand(op, i), region, depth + 1))
            return true;
    return false;
}

/* Does another product of this region go on with the result, or this one with another's? */
static bool is_chained(const Selector *s, const Op *dot)
{
    if (follows_from_product(tt_operand(dot, 0), dot->parent, 0))
        return true;
    for (int i = 0; i < s->dots.count; i++)
        if (s->dots.data[i] && s->dots.data[i] != dot && s->dots.data[i]->parent == dot->parent &&
            follows_from_product(tt_operand(s->dots.data[i], 0), dot->parent, 0))
            return true;
    return false;
}

/* Warps along the batch, and then along M and N such that each has about as many rows as columns; all along M where
 * products follow each other, so that the rows stay with their warp. */
static void share_by_warps(const Selector *s, const Op *dot, int64_t warps[TT_MAX_RANK])
{
    const Type *sum = dot->results[0]->type;
    int upper = sum->rank - 2, lower = sum->rank - 1;
    int64_t m = tt_next_pow2(sum->shape[upper]), n = tt_next_pow2(sum->shape[lower]),
            left = s->options->num_warps;
    warps[0] = warps[upper] = warps[lower] = 1;
    if (upper) {
        warps[0] = TT_MIN(left, tt_next_pow2(sum->shape[0]));
        left /= warps[0];
    }
    if (is_chained(s, dot)) {
        int64_t share = TT_MIN(left, TT_MAX(1, m / 16));
        warps[upper] = share;
        left /= share;
    }
    for (; left > 1; left /= 2) {
        bool rows = m / warps[upper] > 16 && (m / warps[upper] >= n / warps[lower] || n / warps[lower] <= 8);
        warps[rows ? upper : lower] *= 2;
    }
}

/* The choice "rows": how many warps share the rows of a product, the others share its columns. Products that go on with
 * each other's results have none. */
static int64_t choose_rows(const Selector *s, const Op *dot, int64_t least, int64_t most_columns, int64_t own)
{
    const Type *sum = dot->results[0]->type;
    int64_t values[TT_MOST_CHOICES], warps = s->options->num_warps, m = tt_next_pow2(sum->shape[0]),
                                     n = tt_next_pow2(sum->shape[1]);
    int count = 0;
    for (int64_t rows = least; rows <= warps && rows * 16 <= m; rows *= 2)
        if (n * rows / warps >= TT_WGMMA_LEAST_COLUMNS && n * rows / warps <= most_columns)
            values[count++] = rows;
    return is_chained(s, dot) ? own : tt_choose(s->module, "rows", values, count, own);
}

/* The choice "wgmma": that instruction, or mma.sync, which small products may be faster with. */
static bool choose_wgmma(Module *module)
{
    static const int64_t values[] = {1, 0};
    return tt_choose(module, "wgmma", values, TT_COUNT(values), 1);
}

/* ---- operands -------------------------------------------------------------------------------------------------------------------- */

/* The tile whose elements a value is made of in that it repeats each one, x x y y ... (narrow_loads.c), or NULL. */
static const Value *repeated_tile(const Op *op)
{
    const Op *broadcast = op->opcode == OP_reshape ? tt_def(tt_operand(op, 0), OP_broadcast) : NULL;
    const Op *inner = broadcast ? tt_def(tt_operand(broadcast, 0), OP_expand_dims) : NULL;
    return inner && tt_operand(inner, 0)->type->rank == op->results[0]->type->rank ? tt_operand(inner, 0)
                                                                                   : NULL;
}

/* Along which dimension of `to` lies what lies along one of `from`, in row-major order? */
static int reshaped_axis(const Type *from, const Type *to, int axis)
{
    int64_t distance = 1, inner = 1;
    for (int i = axis + 1; i < from->rank; i++)
        distance *= from->shape[i];
    int found = to->rank - 1;
    while (found > 0 && (inner * to->shape[found] <= distance || to->shape[found] == 1))
        inner *= to->shape[found--];
    return found;
}

/* What a value's elements come from, one by one: of what is computed of several the first one that is not a constant or a choice's
 * condition. */
static const Value *elements_of(const Op *op)
{
    const Value *repeated = repeated_tile(op);
    bool moves = op->opcode == OP_permute || op->opcode == OP_reshape || op->opcode == OP_join;
    if (repeated || !(moves || tt_has(op, ELEMENTWISE)))
        return repeated;
    for (int i = op->opcode == OP_select; i < op->operand_count; i++)
        if (!tt_is_constant(tt_operand(op, i)) && !tt_def(tt_operand(op, i), OP_splat))
            return tt_operand(op, i);
    return NULL;
}

/* The load, if any, whose elements `value` consists of, and the dimension of `value` along which they are neighbours in memory. */
static const Op *load_behind(const AxisInfos *infos, const Value *value, int *axis)
{
    const Op *op = value->op;
    if (op && op->opcode == OP_load) {
        *axis = tt_fastest_axis(infos, op);
        return op;
    }
    const Value *elements = op ? elements_of(op) : NULL;
    const Op *load = elements ? load_behind(infos, elements, axis) : NULL;
    if (!load || elements == repeated_tile(op))
        return load;
    if (op->opcode == OP_reshape)
        *axis = reshaped_axis(elements->type, value->type, *axis);
    if (op->opcode == OP_permute) {
        const int64_t *order = tt_find_attr(op, ATTR_order)->ints;
        int there = *axis;
        for (*axis = 0; order[*axis] != there;)
            ++*axis;
    }
    return load;
}

/* Elements that are loaded one by one, since no two of them are known to be neighbours. */
static bool is_gathered(const AxisInfos *infos, const Op *load, int axis)
{
    enum { LEAST_BYTES = 4 /* that asynchronous copies take */ };
    const AxisInfo *info = tt_axis_info(infos, tt_operand(load, 0));
    int64_t bytes = tt_byte_width(load->results[0]->type);
    return TT_MIN(info->contiguity[axis] * bytes, info->divisibility[axis]) < LEAST_BYTES;
}

/* Lanes take what lies closest in memory then, if so much is known, and each thread, to store whole vectors, what lies along
 * the other dimension. But of rows that begin anywhere each thread has a piece, with one address, and of other sizes than 2
 * bytes tensor cores take elements along K only. */
static bool can_lie_across(const AxisInfos *infos, const Op *load)
{
    const AxisInfo *info = tt_axis_info(infos, tt_operand(load, 0));
    int last = info->rank - 1, fastest = tt_fastest_axis(infos, load);
    return last && tt_is_nearer_axis(info, fastest, 2 * last - 1 - fastest) &&
           info->contiguity[fastest] == 1 && tt_byte_width(load->results[0]->type) == 2;
}

/* The dimension, of the last two, along which an operand is to lie in its buffer: as in global memory; across that where
 * threads gather elements one by one, or else along K, as what does not come from memory. */
static int fastest_axis(const AxisInfos *infos, const Value *value, int along_k)
{
    int axis, last = value->type->rank - 1;
    const Op *load = load_behind(infos, value, &axis);
    if (!load || axis < last - 1)
        return last;
    if (!is_gathered(infos, load, tt_fastest_axis(infos, load)))
        return axis;
    return axis == along_k && can_lie_across(infos, load) ? 2 * last - 1 - along_k : along_k;
}

const LinearLayout *tt_buffer_layout(Module *module, const Type *type, int fastest)
{
    int64_t shape[TT_MAX_RANK];
    int rank = type->rank, last = rank - 1, order[TT_MAX_RANK], bytes = tt_byte_width(type);
    for (int i = 0; i < rank; i++) {
        shape[i] = tt_next_pow2(type->shape[i]);
        order[i] = i;
    }
    bool turned = fastest != last;
    if (turned) {
        int64_t extent = shape[last];
        shape[last] = shape[last - 1];
        shape[last - 1] = extent;
        order[last] = last - 1;
        order[last - 1] = last;
    }
    int64_t row = shape[last] * bytes;
    LinearLayout layout = row < 32 ? tt_layout_swizzled(shape, rank, 1, 1, 1)
                                   : tt_layout_nvmma(shape, rank, bytes, (int)TT_MIN(row, 128));
    if (turned)
        layout = tt_layout_permute(&layout, order);
    return tt_intern_layout(module, &layout);
}

int tt_buffer_axis(const LinearLayout *layout)
{
    for (int axis = layout->rank - 1; axis >= 0; axis--)
        if (layout->out_bits[axis] && layout->bases[0] == 1ull << tt_layout_axis_start(layout, axis))
            return axis;
    return layout->rank - 1;
}

static Builder builder_behind(const Value *value)
{
    if (value->op)
        return tt_builder_after(value->op);
    Builder builder = tt_builder_at_end(value->region);
    builder.before = value->region->first;
    return builder;
}

static Value *build_buffer(Builder *b, Opcode opcode, Value *operand, const Type *type,
                           const LinearLayout *layout, Attr *attrs)
{
    Op *op = tt_build_op(b, opcode, &operand, 1, &type, 1, attrs);
    op->results[0]->layout = layout;
    op->results[0]->name = operand->name;
    return op->results[0];
}

static Value *stage(Selector *s, Value *value, const LinearLayout *layout, Op *before);

/* The source of a permuted tile in a buffer is the tile in a buffer. */
static Value *stage_permuted(Selector *s, Builder *b, Value *value, const LinearLayout *layout, Op *before)
{
    const Attr *order = tt_find_attr(value->op, ATTR_order);
    int back[TT_MAX_RANK];
    for (int i = 0; i < order->count; i++)
        back[order->ints[i]] = i;
    LinearLayout turned = tt_layout_permute(layout, back);
    Value *source = stage(s, tt_operand(value->op, 0), tt_intern_layout(s->module, &turned), before);
    return build_buffer(b, OP_smem_permute, source, tt_buffer_type(s->module, value->type, 1), layout,
                        tt_attr_ints(s->module, ATTR_order, order->ints, order->count, NULL));
}

/* A buffer with this layout that holds the tile: one for all products, or (in `before`) for one of them alone. */
static Value *stage(Selector *s, Value *value, const LinearLayout *layout, Op *before)
{
    Staged key;
    memset(&key, 0, sizeof key);
    key.value = value;
    key.layout = layout;
    void **slot = before ? NULL : tt_map_slot(&s->buffers, &key, sizeof key);
    if (slot && *slot)
        return *slot;
    Builder b = before ? tt_builder_before(before) : builder_behind(value);
    b.loc = value->op ? value->op->loc : value->loc;
    const Type *type = tt_buffer_type(s->module, value->type, 1);
    Value *buffer = tt_def(value, OP_permute) ? stage_permuted(s, &b, value, layout, before)
                                              : build_buffer(&b, OP_smem_alloc, value, type, layout, NULL);
    return before ? buffer : (*tt_map_slot(&s->buffers, &key, sizeof key) = buffer);
}

int tt_staged_axis(const AxisInfos *infos, const Value *value, int along_k)
{
    if (!tt_def(value, OP_permute))
        return fastest_axis(infos, value, along_k);
    const Attr *order = tt_find_attr(value->op, ATTR_order);
    int source = tt_staged_axis(infos, tt_operand(value->op, 0), (int)order->ints[along_k]);
    for (int i = order->count - 2; i < order->count; i++)
        if (order->ints[i] == source)
            return i;
    return value->type->rank - 1;
}

static Value *stage_operand(Selector *s, Op *dot, int operand, bool along_k)
{
    Value *value = tt_operand(dot, operand);
    int k = value->type->rank - 1 - operand, axis = along_k ? k : tt_staged_axis(s->axis_infos, value, k);
    return stage(s, value, tt_buffer_layout(s->module, value->type, axis), NULL);
}

/* Computed in the loop: then it is in registers. What stays the same in the loop is not left there: of such an operand of wgmma
 * ptxas 13.0 gave the registers to the operand of the loop's other product. */
bool tt_is_computed_here(const Op *dot, const Value *value)
{
    value = tt_before_permutes(value);
    return value->op && value->op->parent == dot->parent && value->op->opcode != OP_load;
}

/* Is it loaded in the product's loop? Then copies may put it into a buffer as it is. */
static bool is_copied(const Op *dot, const Value *value)
{
    const Op *around = dot->parent->op;
    value = tt_before_permutes(value);
    return tt_def(value, OP_load) && value->op->parent == dot->parent && around && around->opcode == OP_for;
}

/* ---- fp32 in tf32 ----------------------------------------------------------------------------------------------------------------
 * An operand is raised, for the tensor core to round it, where that is least work: on its way to the tensor core what
 * asynchronous copies put into a buffer, and what stays in registers; else once, before a buffer. */

static bool is_rounded(const Op *dot)
{
    return tt_element(tt_operand(dot, 0)->type)->kind == TT_F32 && !tt_find_attr(dot, ATTR_raised);
}

static Value *raised(Selector *s, Value *value, int64_t units)
{
    Raised key;
    memset(&key, 0, sizeof key);
    key.value = value;
    key.units = units;
    void **slot = tt_map_slot(&s->raised, &key, sizeof key);
    if (*slot)
        return *slot;
    Builder b = builder_behind(value);
    b.loc = value->op ? value->op->loc : value->loc;
    Value *result;
    if (tt_def(value, OP_permute)) {
        Value *source = raised(s, tt_operand(value->op, 0), units);
        result = tt_build_permute(&b, source, tt_find_attr(value->op, ATTR_order)->ints);
    } else {
        result = tt_build_raised(&b, value, units);
    }
    return *tt_map_slot(&s->raised, &key, sizeof key) = result;
}

static void raise_operand(Selector *s, Op *dot, int operand, int64_t units)
{
    tt_set_operand(dot, operand, raised(s, tt_operand(dot, operand), units));
}

/* ---- rewriting ------------------------------------------------------------------------------------------------------------------- */

static const int64_t *dot_warps(const Op *dot) { return tt_find_attr(dot, ATTR_warps)->ints; }

static const LinearLayout *layout_of(Module *module, const Op *product, const Type *type, MmaPart part)
{
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        shape[i] = tt_next_pow2(type->shape[i]);
    LinearLayout layout = tt_layout_mma(shape, type->rank, part, tt_byte_width(type), dot_warps(product));
    return tt_intern_layout(module, &layout);
}

const LinearLayout *tt_product_layout(Module *module, const Op *product)
{
    return layout_of(module, product, product->results[0]->type, MMA_ACCUMULATOR);
}

const LinearLayout *tt_fragment_layout(Module *module, const Op *product, int operand)
{
    return layout_of(module, product, tt_operand(product, operand)->type, operand ? MMA_B : MMA_A);
}

bool tt_is_product(const Op *op) { return op->opcode == OP_dot || op->opcode == OP_wgmma; }

bool tt_has_dot(const Region *body)
{
    TT_FOR_OPS(op, body)
    if (op->opcode == OP_dot)
        return true;
    return false;
}

static void find_product(Op *op, void *found) { *(bool *)found |= tt_is_product(op); }

bool tt_has_products(Region *region)
{
    bool found = false;
    tt_walk(region, find_product, &found);
    return found;
}

bool tt_is_on_tensor_cores(const Op *op)
{
    return op->opcode == OP_wgmma ||
           (op->opcode == OP_dot && !strcmp(tt_string_attr(op, ATTR_instruction, ""), "mma"));
}

static void see_proxy(Value *buffer)
{
    while (tt_def(buffer, OP_smem_permute))
        buffer = tt_operand(buffer->op, 0);
    tt_set_attr(buffer->op, tt_attr_int(buffer->op->parent->function->module, ATTR_proxy, 1, NULL));
}

/* Where tensor cores do not add in f16, its sums are of f32, rounded behind each product. */
static void widen_sum(Selector *s, Op *dot)
{
    Value *result = dot->results[0];
    const Type *narrow = result->type, *f32 = tt_scalar_type(s->module, TT_F32);
    if (tt_element(narrow)->kind != TT_F16 || has_half_sums(dot, s->options))
        return;
    Builder before = tt_builder_before(dot), after = tt_builder_after(dot);
    tt_set_operand(dot, 2, tt_build_cast(&before, OP_float_cast, tt_operand(dot, 2), f32));
    result->type = tt_with_element(s->module, narrow, f32);
    Op *cast = tt_build_op(&after, OP_float_cast, &result, 1, &narrow, 1, NULL);
    tt_replace_all_uses(result, cast->results[0]);
    tt_set_operand(cast, 0, result);
}

/* Does mma.sync take the operand from the registers in which it was computed? Not where other warps need it as well, and
 * would have to compute it again, unless it is in the right ones after another product; and what is computed as its
 * transpose, which a buffer turns, only if it lies along K already. */
static bool stays_in_registers(const Selector *s, const Op *dot, int operand, const int64_t *warps)
{
    const Value *value = tt_operand(dot, operand);
    int rank = value->type->rank, k = rank - 1 - operand;
    bool is_alone = warps[operand ? rank - 2 : rank - 1] == 1;
    if (!operand && follows_from_product(value, dot->parent, 0))
        return true;
    if (!is_alone || !tt_is_computed_here(dot, value))
        return false;
    const Value *source = tt_before_permutes(value);
    return source == value ||
           (!follows_from_product(source, dot->parent, 0) && tt_staged_axis(s->axis_infos, value, k) == k);
}

static void use_mma(Selector *s, Op *dot)
{
    int64_t warps[TT_MAX_RANK];
    share_by_warps(s, dot, warps);
    if (dot->results[0]->type->rank == 2) {
        warps[0] = choose_rows(s, dot, 1, INT64_MAX, warps[0]);
        warps[1] = s->options->num_warps / warps[0];
    }
    tt_set_attr(dot, tt_attr_ints(s->module, ATTR_warps, warps, dot->results[0]->type->rank, NULL));
    tt_set_attr(dot, tt_attr_string(s->module, ATTR_instruction, "mma", NULL));
    int64_t units[2] = {0};
    for (int i = 0; i < 2; i++) {
        const Value *value = tt_operand(dot, i);
        bool stays = stays_in_registers(s, dot, i, warps), rounds = is_rounded(dot) && !tt_is_tf32(value);
        if (rounds && (stays || is_copied(dot, value)))
            units[i] = TT_NEAREST;
        else if (rounds)
            raise_operand(s, dot, i, TT_NEAREST);
        if (!stays)
            tt_set_operand(dot, i, stage_operand(s, dot, i, false));
    }
    if (units[0] || units[1])
        tt_set_attr(dot, tt_attr_ints(s->module, ATTR_raised, units, 2, NULL));
}

/* The lowest bit of k in which lanes differ that store an operand: those of asynchronous copies go along K element by
 * element, others hold 16 bytes each. -1: they go along the other dimension. */
static int spread_of(const Selector *s, const Value *value, int operand)
{
    int k = value->type->rank - 1 - operand, bytes = tt_byte_width(value->type), axis;
    if (tt_staged_axis(s->axis_infos, value, k) != k)
        return -1;
    bool is_copied = s->options->sm >= 80 && bytes >= 4 && load_behind(s->axis_infos, value, &axis);
    return is_copied ? 0 : tt_log2(TT_MAX(1, 16 / bytes));
}

/* The buffers stand in front of the product, and have their places for as long as it runs: large tiles fit one product
 * after the other. */
static void use_multiply_adds(Selector *s, Op *dot)
{
    tt_set_attr(dot, tt_attr_string(s->module, ATTR_instruction, "fma", NULL));
    for (int i = 0; i < 2; i++) {
        Value *value = tt_operand(dot, i);
        const LinearLayout *layout =
            tt_factor_layout(s->module, dot, i, spread_of(s, value, i), s->options->num_warps);
        tt_set_operand(dot, i, stage(s, value, layout, dot));
    }
}

static Value *build_wgmma(Builder *b, Value *const operands[3], Attr *attrs)
{
    const Type *type = operands[2]->type;
    Op *product = tt_build_op(b, OP_wgmma, operands, 3, &type, 1, attrs);
    Op *wait = tt_build_op(b, OP_wgmma_wait, product->results, 1, &type, 1,
                           tt_attr_int(b->module, ATTR_left, 0, NULL));
    return wait->results[0];
}

/* Sums of `depth` of K each, which are added up in f32. */
static Value *build_partial_sums(Builder *b, Value *const operands[3], int64_t depth, const int64_t warps[2])
{
    Value *sums = operands[2];
    int64_t extent = operands[1]->type->shape[0];
    for (int64_t k = 0; k < extent; k += depth) {
        int64_t part[] = {k, TT_MIN(k + depth, extent)};
        Value *partial[] = {operands[0], operands[1], tt_build_float(b, sums->type, 0)};
        Attr *attrs =
            tt_attr_ints(b->module, ATTR_k, part, 2, tt_attr_ints(b->module, ATTR_warps, warps, 2, NULL));
        sums = tt_build2(b, OP_fadd, sums, build_wgmma(b, partial, attrs));
    }
    return sums;
}

/* Elements of 4 bytes that do not lie along K, as the buffers of wgmma need them, go one by one from another buffer to the
 * registers of the left operand. */
static bool goes_in_any_order(const Selector *s, const Value *value)
{
    return tt_element(value->type)->kind == TT_F32 && tt_staged_axis(s->axis_infos, value, 1) != 1;
}

/* Does wgmma take the left operand from registers? What it is to round has to come through them, too. */
static bool is_left_in_registers(const Selector *s, const Op *dot)
{
    const Value *left = tt_operand(dot, 0);
    return tt_is_computed_here(dot, left) || goes_in_any_order(s, left) ||
           (is_rounded(dot) && is_copied(dot, left));
}

/* wgmma reads the right operand as copies put it into the buffer, and cuts it: towards zero. So the left one is rounded away
 * from zero then, and the means of both errors cancel, while no product is further off than that of two numbers rounded to
 * nearest. Where the right one is not copied, or the left one has nothing to round, both are rounded to nearest. */
static Attr *round_for_wgmma(Selector *s, Op *dot)
{
    if (!is_rounded(dot))
        return NULL;
    const Value *left = tt_operand(dot, 0), *right = tt_operand(dot, 1);
    bool has_left = !tt_is_tf32(left), is_cut = has_left && is_copied(dot, right) && !tt_is_tf32(right);
    int64_t units[] = {is_cut ? TT_AWAY : TT_NEAREST, 0};
    if (!is_cut && !tt_is_tf32(right))
        raise_operand(s, dot, 1, TT_NEAREST);
    if (has_left && is_left_in_registers(s, dot))
        return tt_attr_ints(s->module, ATTR_raised, units, 2, NULL);
    if (has_left)
        raise_operand(s, dot, 0, units[0]);
    return NULL;
}

static void use_wgmma(Selector *s, Op *dot, const int64_t warps[2])
{
    bool along_k = tt_byte_width(tt_operand(dot, 0)->type) != 2, in_registers = is_left_in_registers(s, dot);
    Attr *attrs = tt_attr_ints(s->module, ATTR_warps, warps, 2, round_for_wgmma(s, dot));
    Value *operands[] = {tt_operand(dot, 0), stage_operand(s, dot, 1, along_k), tt_operand(dot, 2)};
    see_proxy(operands[1]);
    if (!in_registers) {
        operands[0] = stage_operand(s, dot, 0, along_k);
        see_proxy(operands[0]);
    }
    Builder b = tt_builder_before(dot);
    int64_t depth = imprecise_depth(dot);
    Value *sums = depth ? build_partial_sums(&b, operands, depth, warps) : build_wgmma(&b, operands, attrs);
    sums->name = dot->results[0]->name;
    tt_replace_op(dot, &sums);
}

/* wgmma reads rows of 32 bytes at least. */
static bool has_rows(const Selector *s, const Op *dot)
{
    for (int i = 0; i < 2; i++) {
        const Value *value = tt_operand(dot, i);
        int bytes = tt_byte_width(value->type), k = value->type->rank - 1 - i;
        if (!i && is_left_in_registers(s, dot))
            continue;
        int axis = bytes != 2 ? k : tt_staged_axis(s->axis_infos, value, k);
        if (tt_next_pow2(value->type->shape[axis]) * bytes < 32)
            return false;
    }
    return true;
}

static void collect_dots(Op *op, void *context)
{
    Selector *s = context;
    if (op->opcode == OP_dot && takes_element(op, s->options))
        tt_push(s->scratch, s->dots, op);
    else if (op->opcode == OP_dot)
        tt_push(s->scratch, s->others, op);
}

bool tt_gpu_select_dot(Module *module, const GpuOptions *options, Arena *scratch)
{
    Selector s = {.module = module,
                  .options = options,
                  .scratch = scratch,
                  .buffers = {.arena = scratch},
                  .raised = {.arena = scratch}};
    tt_walk(module->functions->body, collect_dots, &s);
    if (!s.dots.count && !s.others.count)
        return false;
    s.axis_infos = tt_analyze_axis_info(module->functions, scratch);
    for (int i = 0; i < s.dots.count; i++) {
        Op *dot = s.dots.data[i];
        int64_t warps[2];
        widen_sum(&s, dot);
        if (share_by_warpgroups(dot, options, false, warps) && has_rows(&s, dot) && choose_wgmma(module)) {
            int64_t most = most_columns(options, dot->results[0]->type);
            warps[0] = choose_rows(&s, dot, TT_WARPGROUP, most, warps[0]);
            warps[1] = options->num_warps / warps[0];
            use_wgmma(&s, dot, warps);
            s.dots.data[i] = NULL; /* it is gone */
        } else {
            use_mma(&s, dot);
        }
    }
    for (int i = 0; i < s.others.count; i++)
        use_multiply_adds(&s, s.others.data[i]);
    tt_opt_run_pass(module, PASS_dce); /* tiles that are permuted in a buffer now */
    return true;
}
