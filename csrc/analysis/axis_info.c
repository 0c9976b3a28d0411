/* Contiguity, divisibility and constancy along each dimension of a tile (analysis.h defines them).
 *
 * How to reason about them, for one dimension of extent e. Let C, K, D be the three numbers of a tile.
 * - A group size g may stand for C when g divides C, or when C >= e (one run: every split of it is a run
 *   too). So what two tiles have in common is the gcd, with "C >= e" as the neutral element: tt_meet_groups.
 *   The same for K.
 * - D divides the elements at multiples of C. An element at a multiple of g lies gcd(C, g) * k behind one of
 *   those, so it is divisible by gcd(D, gcd(C, g)), or by D when g is a multiple of C: tt_divisor_at.
 * - Where C is 1, D divides all elements; and all elements equal one at a multiple of K, so it is enough to
 *   know what divides those.
 * - D and the groups that divisions cut are powers of two: these survive a sum that wraps around.
 *
 * The walk visits operations in order. A loop's arguments start from its initial values and are met with what
 * the body yields until nothing changes; the numbers only shrink, so this ends. */
#include "analysis/axis.h"

struct AxisInfos {
    Arena *arena;
    Map infos; /* Value* -> AxisInfo* */
    enum { TAKE_PROMISES, DOUBT_PROMISES } promises;
    bool has_doubts; /* a promise of runs was not taken */
};

/* ---- numbers ------------------------------------------------------------------------------------------- */

int64_t tt_divisor_of(int64_t x)
{
    int zeros = x ? __builtin_ctzll((unsigned long long)x) : 63;
    return zeros < 30 ? 1ll << zeros : TT_MAX_DIVISOR;
}

int64_t tt_multiply_divisors(int64_t a, int64_t b) { return TT_MIN(a * b, TT_MAX_DIVISOR); }

int64_t tt_meet_groups(int64_t a, int64_t b, int64_t extent)
{
    return a >= extent ? TT_MIN(b, extent) : b >= extent ? a : tt_gcd(a, b);
}

int64_t tt_divisor_at(AxisOperand x, int dim, int64_t group)
{
    int64_t contiguity = x.info->contiguity[dim], extent = tt_extent(x.type, dim);
    if (contiguity == 1 || group >= extent)
        return x.info->divisibility[dim]; /* all elements; or the one at index 0, which begins a group */
    if (contiguity < extent && group % contiguity == 0)
        return x.info->divisibility[dim];
    int64_t offset = contiguity >= extent ? group : tt_gcd(contiguity, group);
    return tt_gcd(x.info->divisibility[dim], offset * tt_axis_unit(x.type));
}

int64_t tt_divisor_of_all(AxisOperand x)
{
    int64_t divisor = 1;
    for (int dim = 0; dim < x.info->rank; dim++)
        divisor = TT_MAX(divisor,
                         tt_extent(x.type, dim) == 1 ? x.info->divisibility[dim] : tt_divisor_at(x, dim, 1));
    return divisor;
}

AxisInfo tt_unknown_axes(const Type *type)
{
    AxisInfo info = {.rank = tt_axis_rank(type), .sign = tt_is_tile(type) ? SIGN_UNKNOWN : SIGN_BY_STARTS};
    for (int dim = 0; dim < info.rank; dim++)
        info.contiguity[dim] = info.constancy[dim] = info.divisibility[dim] = info.apart[dim] = 1;
    return info;
}

/* Meet in the lattice: what holds of an element that comes from either. */
static AxisInfo meet_axes(AxisOperand a, AxisOperand b)
{
    AxisInfo info = tt_unknown_axes(a.type);
    for (int dim = 0; dim < info.rank; dim++) {
        int64_t extent = tt_extent(a.type, dim);
        info.contiguity[dim] = tt_meet_groups(a.info->contiguity[dim], b.info->contiguity[dim], extent);
        info.constancy[dim] = tt_meet_groups(a.info->constancy[dim], b.info->constancy[dim], extent);
        int64_t group = info.contiguity[dim] > 1 ? info.contiguity[dim] : info.constancy[dim];
        info.divisibility[dim] = tt_gcd(tt_divisor_at(a, dim, group), tt_divisor_at(b, dim, group));
        info.looked_up[dim] = a.info->looked_up[dim] || b.info->looked_up[dim];
        info.apart[dim] = TT_MIN(a.info->apart[dim], b.info->apart[dim]);
    }
    info.sign = TT_MAX(a.info->sign, b.info->sign);
    info.is_constant = a.info->is_constant && b.info->is_constant && a.info->constant == b.info->constant;
    info.constant = info.is_constant ? a.info->constant : 0;
    return info;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

const AxisInfo *tt_axis_info(const AxisInfos *infos, const Value *value)
{
    static const AxisInfo ones = {
        .rank = TT_MAX_RANK,
        .contiguity = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        .divisibility = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        .constancy = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        .apart = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    };
    _Static_assert(TT_MAX_RANK == 16, "a one for each dimension");
    const AxisInfo *info = tt_map_find_ptr(&infos->infos, value);
    return info ? info : &ones;
}

bool tt_is_faster_axis(const AxisInfo *info, int a, int b)
{
    if (info->contiguity[a] != info->contiguity[b])
        return info->contiguity[a] > info->contiguity[b];
    return info->looked_up[b] && !info->looked_up[a];
}

bool tt_is_nearer_axis(const AxisInfo *info, int a, int b)
{
    enum { LINE = 128 /* bytes: what lies in several is as far away as in others */ };
    bool is_known = info->contiguity[a] != info->contiguity[b] || info->looked_up[a] != info->looked_up[b];
    int64_t apart =
        info->apart[b] < TT_MAX_DIVISOR ? info->apart[b] : 0; /* equal elements are not far away */
    return is_known ? tt_is_faster_axis(info, a, b) : info->apart[a] < TT_MIN(apart, LINE);
}

int tt_fastest_axis(const AxisInfos *infos, const Op *load)
{
    const AxisInfo *info = tt_axis_info(infos, tt_operand(load, 0));
    int last = info->rank - 1;
    return last && tt_is_nearer_axis(info, last - 1, last) ? last - 1 : last;
}

int64_t tt_copied_elements(const AxisInfos *infos, const Op *load, int axis)
{
    const AxisInfo *info = tt_axis_info(infos, tt_operand(load, 0));
    const Type *type = load->results[0]->type;
    int64_t extent = type->shape[axis],
            elements = TT_MIN(info->contiguity[axis],
                              TT_MIN(info->divisibility[axis], TT_CHUNK) / tt_byte_width(type));
    return TT_MIN(elements, extent & -extent); /* no copy goes beyond the shape */
}

static AxisOperand operand_of(const AxisInfos *infos, const Value *value)
{
    return (AxisOperand){tt_axis_info(infos, value), value->type};
}

static bool same_info(const AxisInfo *a, const AxisInfo *b)
{
    for (int dim = 0; dim < a->rank; dim++)
        if (a->contiguity[dim] != b->contiguity[dim] || a->constancy[dim] != b->constancy[dim] ||
            a->divisibility[dim] != b->divisibility[dim] || a->apart[dim] != b->apart[dim] ||
            a->looked_up[dim] != b->looked_up[dim])
            return false;
    return a->sign == b->sign && a->is_constant == b->is_constant && a->constant == b->constant;
}

/* Records the numbers; returns whether they are other than before. */
static bool set_info(AxisInfos *infos, const Value *value, AxisInfo info)
{
    void **slot = tt_map_slot_ptr(&infos->infos, value);
    for (int dim = 0; dim < info.rank; dim++) {
        int64_t extent = tt_extent(value->type, dim);
        info.contiguity[dim] = TT_MIN(info.contiguity[dim], extent);
        info.constancy[dim] = TT_MIN(info.constancy[dim], extent);
        if (info.constancy[dim] == extent)
            info.apart[dim] = TT_MAX_DIVISOR;
        else if (info.contiguity[dim] == 1) /* what divides two elements divides how far they are apart */
            info.apart[dim] = TT_MAX(info.apart[dim], info.divisibility[dim]);
    }
    if (!*slot)
        *slot = TT_NEW(infos->arena, AxisInfo);
    else if (same_info(*slot, &info))
        return false;
    *(AxisInfo *)*slot = info;
    return true;
}

/* ---- operations without operands, hints and memory ----------------------------------------------------- */

static AxisInfo axes_of_constant(const Op *op)
{
    const Type *type = op->results[0]->type;
    AxisInfo info = tt_unknown_axes(type);
    for (int dim = 0; dim < info.rank; dim++)
        info.constancy[dim] = tt_extent(type, dim);
    if (!tt_is_int(type))
        return info;
    info.is_constant = true;
    info.constant = tt_int_attr(op, ATTR_value, 0);
    info.sign = tt_sign_of(info.constant);
    for (int dim = 0; dim < info.rank; dim++)
        info.divisibility[dim] = tt_divisor_of(info.constant);
    return info;
}

static AxisInfo axes_of_range(const Op *op)
{
    AxisInfo info = tt_unknown_axes(op->results[0]->type);
    int64_t start = tt_int_attr(op, ATTR_start, 0);
    info.contiguity[0] = tt_extent(op->results[0]->type, 0);
    info.divisibility[0] = tt_divisor_of(start);
    info.sign = tt_sign_of(start);
    return info;
}

static int64_t hint_of(const Op *op, AttrKey key, int dim)
{
    const Attr *attr = tt_find_attr(op, key);
    return attr && dim < attr->count ? TT_MAX(attr->ints[dim], 1) : 1;
}

/* What the programmer promises holds beside what is known. A promise of divisibility is about the first
 * element of each contiguous group, whichever of the two hints comes first. */
static AxisInfo axes_of_hint(AxisInfos *infos, const Op *op, AxisOperand x)
{
    AxisInfo info = *x.info;
    for (int dim = 0; dim < info.rank; dim++) {
        int64_t contiguity = TT_MIN(hint_of(op, ATTR_contiguity, dim), tt_extent(x.type, dim));
        bool is_news = contiguity > info.contiguity[dim];
        if (is_news && infos->promises == DOUBT_PROMISES) {
            infos->has_doubts = true;
        } else if (is_news) {
            info.divisibility[dim] = tt_divisor_at(x, dim, contiguity);
            info.contiguity[dim] = contiguity;
        }
        info.constancy[dim] = TT_MAX(info.constancy[dim], hint_of(op, ATTR_constancy, dim));
        int64_t divisor = tt_divisor_of(hint_of(op, ATTR_divisibility, dim));
        info.divisibility[dim] = TT_MAX(info.divisibility[dim], divisor);
    }
    return info;
}

/* Elements computed, or loaded, from equal operands are equal. */
static AxisInfo axes_of_equal_operands(const Op *op, const AxisOperand *operands)
{
    const Type *type = op->results[0]->type;
    AxisInfo info = tt_unknown_axes(type);
    for (int dim = 0; dim < info.rank; dim++) {
        info.constancy[dim] = tt_extent(type, dim);
        for (int i = 0; i < op->operand_count; i++)
            info.constancy[dim] =
                tt_meet_groups(info.constancy[dim], operands[i].info->constancy[dim], tt_extent(type, dim));
    }
    return info;
}

/* Of programs. */
static AxisInfo axes_of_number(const Op *op)
{
    AxisInfo info = tt_unknown_axes(op->results[0]->type);
    info.sign = SIGN_NOT_NEGATIVE;
    return info;
}

/* Rows of one that may be copied as a block lie apart by whole chunks of 16 bytes, as the array begins (opt/block_copies.c). */
static AxisInfo axes_of_block(const AxisInfos *infos, const Op *op)
{
    const Type *type = op->results[0]->type;
    AxisInfo info = tt_unknown_axes(type);
    int last = info.rank - 1;
    const AxisInfo *offset = tt_axis_info(infos, tt_operand(op, op->operand_count - 1));
    if (tt_may_be_copied(op)) {
        info.contiguity[last] = tt_extent(type, last);
        info.divisibility[last] = TT_MIN(offset->divisibility[0] * tt_axis_unit(type), TT_CHUNK);
    }
    return info;
}

static AxisInfo axes_of_op(AxisInfos *infos, const Op *op, const AxisOperand *operands)
{
    switch (op->opcode) {
    case OP_constant:
        return axes_of_constant(op);
    case OP_range:
        return axes_of_range(op);
    case OP_program_id:
    case OP_num_programs:
        return axes_of_number(op);
    case OP_hint:
    case OP_convert_layout:
        return axes_of_hint(infos, op, operands[0]);
    case OP_load:
        return tt_int_attr(op, ATTR_volatile, 0) ? tt_unknown_axes(op->results[0]->type)
                                                 : axes_of_equal_operands(op, operands);
    default:
        break;
    }
    if (tt_has(op, SHAPE))
        return tt_axes_of_shape(op, operands);
    if (!tt_has(op, ELEMENTWISE))
        return tt_unknown_axes(op->results[0]->type);
    if (tt_is_float(op->results[0]->type) || tt_is_float(operands[0].type))
        return axes_of_equal_operands(op, operands);
    return tt_axes_of_arithmetic(op, operands);
}

/* What is computed from numbers that were looked up is, too, in the dimensions in which its elements differ. */
static void note_lookups(AxisInfo *info, const Op *op, const AxisOperand *operands)
{
    const Type *type = op->results[0]->type;
    for (int dim = 0; dim < info->rank; dim++) {
        bool looked_up = info->looked_up[dim] || op->opcode == OP_load;
        for (int i = 0; i < op->operand_count && tt_has(op, ELEMENTWISE); i++)
            looked_up |= operands[i].info->rank == info->rank && operands[i].info->looked_up[dim];
        info->looked_up[dim] = looked_up && info->constancy[dim] < tt_extent(type, dim);
    }
}

static int64_t distance(const Op *op, const AxisOperand *x, int dim)
{
    int64_t a = x[0].info->apart[dim], b = op->operand_count > 1 ? x[1].info->apart[dim] : TT_MAX_DIVISOR;
    switch (op->opcode) {
    case OP_ext_s:
    case OP_ext_u:
    case OP_trunc:
    case OP_hint:
    case OP_convert_layout:
        return a;
    case OP_add:
    case OP_sub:
        return TT_MIN(a, b);
    case OP_addptr:
        return TT_MIN(a, tt_multiply_divisors(b, tt_axis_unit(x[0].type)));
    case OP_mul:
        return TT_MIN(tt_multiply_divisors(a, tt_divisor_of_all(x[1])),
                      tt_multiply_divisors(b, tt_divisor_of_all(x[0])));
    default:
        return 1;
    }
}

/* Operations that move elements have said it. */
static void note_distances(AxisInfo *info, const Op *op, const AxisOperand *operands)
{
    for (int dim = 0; dim < info->rank && op->operand_count && !tt_has(op, SHAPE); dim++)
        info->apart[dim] = distance(op, operands, dim);
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

static void visit_region(AxisInfos *infos, const Region *region);

static bool meet_into(AxisInfos *infos, const Value *value, const Value *other)
{
    return set_info(infos, value, meet_axes(operand_of(infos, value), operand_of(infos, other)));
}

static void copy_info(AxisInfos *infos, const Value *value, const Value *from)
{
    set_info(infos, value, *tt_axis_info(infos, from));
}

/* The index is lower + k * step. */
static void set_loop_index(AxisInfos *infos, const Op *loop)
{
    const Value *index = loop->regions[0]->args[0];
    const AxisInfo *lower = tt_axis_info(infos, tt_operand(loop, 0)),
                   *step = tt_axis_info(infos, tt_operand(loop, 2));
    AxisInfo info = tt_unknown_axes(index->type);
    info.divisibility[0] = tt_gcd(lower->divisibility[0], step->divisibility[0]);
    info.sign = lower->sign;
    set_info(infos, index, info);
}

/* Carried value i of a loop: its initial value, its arguments and what the body yields for it. */
static void visit_loop(AxisInfos *infos, const Op *loop)
{
    bool is_for = loop->opcode == OP_for;
    const Region *first = loop->regions[0], *last = loop->regions[loop->region_count - 1];
    int first_init = is_for ? 3 : 0, first_arg = is_for ? 1 : 0, count = loop->operand_count - first_init;
    if (is_for)
        set_loop_index(infos, loop);
    for (int i = 0; i < count; i++)
        copy_info(infos, first->args[first_arg + i], tt_operand(loop, first_init + i));
    for (bool changed = true; changed;) {
        changed = false;
        visit_region(infos, first);
        if (first != last) {
            for (int i = 0; i < count; i++)
                copy_info(infos, last->args[i], first->args[i]);
            visit_region(infos, last);
        }
        for (int i = 0; i < count; i++)
            changed |= meet_into(infos, first->args[first_arg + i], tt_operand(tt_terminator(last), i));
    }
    for (int i = 0; i < count; i++)
        copy_info(infos, loop->results[i], first->args[first_arg + i]);
}

static void visit_if(AxisInfos *infos, const Op *op)
{
    visit_region(infos, op->regions[0]);
    visit_region(infos, op->regions[1]);
    for (int i = 0; i < op->result_count; i++) {
        copy_info(infos, op->results[i], tt_operand(tt_terminator(op->regions[0]), i));
        meet_into(infos, op->results[i], tt_operand(tt_terminator(op->regions[1]), i));
    }
}

static void visit_op(AxisInfos *infos, const Op *op)
{
    if (tt_is_loop(op)) {
        visit_loop(infos, op);
    } else if (op->opcode == OP_if) {
        visit_if(infos, op);
    } else if (op->opcode == OP_block_pointers) {
        set_info(infos, op->results[0], axes_of_block(infos, op));
        set_info(infos, op->results[1], tt_unknown_axes(op->results[1]->type));
    } else if (op->result_count == 1 && op->operand_count <= 3) {
        AxisOperand operands[3];
        for (int i = 0; i < op->operand_count; i++)
            operands[i] = operand_of(infos, tt_operand(op, i));
        AxisInfo info = axes_of_op(infos, op, operands);
        note_lookups(&info, op, operands);
        note_distances(&info, op, operands);
        set_info(infos, op->results[0], info);
    } else if (tt_has(op, SHAPE)) {
        AxisOperand x = operand_of(infos, tt_operand(op, 0));
        for (int i = 0; i < op->result_count; i++)
            set_info(infos, op->results[i], tt_axes_of_shape(op, &x));
    } else {
        for (int i = 0; i < op->result_count; i++)
            set_info(infos, op->results[i], tt_unknown_axes(op->results[i]->type));
    }
}

static void visit_region(AxisInfos *infos, const Region *region)
{
    TT_FOR_OPS(op, region)
    visit_op(infos, op);
}

static void set_parameter(AxisInfos *infos, const Value *param, const Attr *attrs)
{
    AxisInfo info = tt_unknown_axes(param->type);
    info.sign = SIGN_NOT_NEGATIVE; /* see analysis.h */
    for (const Attr *attr = attrs; attr; attr = attr->next) {
        if (attr->key == ATTR_negative)
            info.sign = SIGN_UNKNOWN;
        for (int dim = 0; attr->key == ATTR_divisibility && dim < TT_MIN(attr->count, info.rank); dim++)
            info.divisibility[dim] = tt_divisor_of(attr->ints[dim]);
    }
    set_info(infos, param, info);
}

static AxisInfos *analyze(const Function *function, Arena *arena, int promises)
{
    AxisInfos *infos = TT_NEW(arena, AxisInfos);
    infos->arena = infos->infos.arena = arena;
    infos->promises = promises;
    for (int i = 0; i < function->body->arg_count; i++)
        set_parameter(infos, function->body->args[i], function->param_attrs[i]);
    visit_region(infos, function->body);
    return infos;
}

AxisInfos *tt_analyze_axis_info(const Function *function, Arena *arena)
{
    return analyze(function, arena, TAKE_PROMISES);
}

/* ---- promises as far as addresses are aligned ---------------------------------------------------------- */

/* The promised runs of pointers, cut into pieces that begin at multiples of their size. */
static void take_aligned_runs(AxisInfo *info, AxisOperand promised)
{
    for (int dim = 0; dim < info->rank; dim++) {
        int64_t aligned = promised.info->divisibility[dim] / tt_axis_unit(promised.type);
        int64_t run = tt_gcd(promised.info->contiguity[dim], TT_MAX(aligned, 1));
        if (run <= info->contiguity[dim])
            continue;
        info->divisibility[dim] = tt_divisor_at(promised, dim, run);
        info->contiguity[dim] = run;
    }
}

AxisInfos *tt_analyze_aligned_axis_info(const Function *function, Arena *arena)
{
    AxisInfos *infos = analyze(function, arena, DOUBT_PROMISES);
    if (!infos->has_doubts)
        return infos;
    const AxisInfos *promised = tt_analyze_axis_info(function, arena);
    for (int i = 0; i < infos->infos.capacity; i++) {
        const MapEntry *entry = &infos->infos.entries[i];
        const Value *value = entry->value ? entry->key : NULL;
        if (value && tt_is_ptr(value->type))
            take_aligned_runs(entry->value, operand_of(promised, value));
    }
    return infos;
}
