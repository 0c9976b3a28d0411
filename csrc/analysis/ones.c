/* Numbers that a kernel computes with by other rules when they are one. A one is a constant, and constants are computed as
 * Python does: quotients round down, nothing wraps around, floats are doubles, and a constant takes the width of what it
 * meets. A variant that knows nothing of the one computes as kernels do. So what follows from numbers and constants alone is
 * computed here by both, every number being one; where they differ, or might, the numbers matter. */
#include "analysis/offsets.h"

/* What a scalar is if all numbers are one. */
typedef struct Known {
    bool is_real, differs, is_marked;
    Scalar value;
} Known;

typedef struct Ones {
    Arena *arena;
    const Region *kernel;
    Map known; /* Value* to Known*: what hangs on a number */
    bool *matters;
} Ones;

static Known *keep(Ones *ones, const Value *value, Known known)
{
    Known *kept = TT_NEW(ones->arena, Known);
    *kept = known;
    *tt_map_slot_ptr(&ones->known, value) = kept;
    return kept;
}

static Known *find(Ones *ones, const Value *value)
{
    Known *found = tt_map_find_ptr(&ones->known, value);
    bool is_number = value->region == ones->kernel && !tt_is_tile(value->type) && tt_is_int(value->type);
    return found || !is_number ? found : keep(ones, value, (Known){.value.i = 1});
}

/* Also of a constant. */
static bool is_known(Ones *ones, const Value *value, Known *known)
{
    int64_t integer;
    const Known *found = find(ones, value);
    *known = found ? *found : (Known){0};
    if (found || tt_is_tile(value->type))
        return found;
    if (tt_constant_int(value, &integer)) {
        known->value.i = tt_is_bool(value->type) ? integer & 1 : integer;
        return true;
    }
    known->is_real = tt_constant_float(value, &known->value.f);
    return known->is_real;
}

static void mark(Ones *ones, const Value *value)
{
    Known *known = find(ones, value);
    if (!known || known->is_marked)
        return;
    known->is_marked = true;
    if (value->region == ones->kernel)
        ones->matters[value->index] = true;
    for (int i = 0; value->op && i < value->op->operand_count; i++)
        mark(ones, tt_operand(value->op, i));
    for (int i = 0; value->op && i < value->op->region_count; i++)
        mark(ones, tt_operand(tt_terminator(value->op->regions[i]), value->index));
}

/* With room for another bit, for constants may have been added up already, and have wrapped around. */
static bool has_room(const Type *type, const Known *known)
{
    int bits = tt_bit_width(type);
    return known->is_real || bits == 1 || known->value.i >> (bits - 2) == 0 ||
           known->value.i >> (bits - 2) == -1;
}

/* Does it take negative numbers for what they are, and rounds none of them? */
static bool takes_negative(const Op *op)
{
    switch (op->opcode) {
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_shl:
    case OP_min_s:
    case OP_max_s:
    case OP_eq:
    case OP_ne:
        return true;
    default:
        return tt_is_signed_comparison(op) || !tt_has(op, ON_INTS);
    }
}

typedef enum Rules {
    ONE_RULE,  /* what neither rounds nor wraps around */
    HAS_EXACT, /* the number that arithmetic without widths gives */
    MAY_DIFFER,
} Rules;

static Rules exact_if(bool holds) { return holds ? HAS_EXACT : MAY_DIFFER; }

static Rules find_exact(const Op *op, const Known *x, Scalar *exact)
{
    int64_t a = x[0].value.i, b = x[1].value.i;
    double f = x[0].value.f, g = x[1].value.f;
    switch (op->opcode) {
    case OP_add:
        return exact_if(!__builtin_add_overflow(a, b, &exact->i));
    case OP_sub:
        return exact_if(!__builtin_sub_overflow(a, b, &exact->i));
    case OP_mul:
        return exact_if(!__builtin_mul_overflow(a, b, &exact->i));
    case OP_shl:
        return exact_if(b >= 0 && b < 62 && !__builtin_mul_overflow(a, 1ll << b, &exact->i));
    case OP_trunc:
    case OP_ext_s:
    case OP_ext_u:
        exact->i = a;
        return HAS_EXACT;
    case OP_int_to_float_s:
    case OP_int_to_float_u:
        exact->f = (double)a;
        return HAS_EXACT;
    case OP_float_cast:
        exact->f = f;
        return HAS_EXACT;
    case OP_fadd:
        exact->f = f + g;
        return HAS_EXACT;
    case OP_fsub:
        exact->f = f - g;
        return HAS_EXACT;
    case OP_fmul:
        exact->f = f * g;
        return HAS_EXACT;
    case OP_fdiv:
    case OP_fdiv_rn:
        exact->f = f / g;
        return exact_if(g != 0);
    default:
        return tt_has(op, ON_INTS) || op->opcode == OP_select || tt_op_infos[op->opcode].rule == COMPARE
                   ? ONE_RULE
                   : MAY_DIFFER;
    }
}

/* What both rules give; false if they may differ. */
static bool same_result(const Op *op, const Known *x, Known *result)
{
    Scalar operands[] = {x[0].value, x[1].value, x[2].value}, exact;
    const Type *from = tt_operand(op, 0)->type, *to = op->results[0]->type;
    if (op->opcode == OP_hint) {
        *result = x[0];
        return true;
    }
    *result = (Known){.is_real = tt_is_float(to)};
    Rules rules = find_exact(op, x, &exact);
    if (rules == MAY_DIFFER || !tt_eval_scalar(op->opcode, from, to, operands, &result->value))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (!has_room(tt_operand(op, i)->type, &x[i]) ||
            (!x[i].is_real && x[i].value.i < 0 && !takes_negative(op)))
            return false;
    return rules == ONE_RULE || (has_room(to, result) &&
                                 (result->is_real ? exact.f == result->value.f : exact.i == result->value.i));
}

/* A scalar, or the tile whose elements it is. */
static const Value *scalar_of(const Value *value)
{
    while (value->op && value->op->operand_count == 1 &&
           (tt_has(value->op, SHAPE) || value->op->opcode == OP_ext_s || value->op->opcode == OP_ext_u))
        value = tt_operand(value->op, 0);
    return value;
}

static bool is_widened(const Value *value)
{
    while (value->op && value->op->operand_count == 1 && tt_has(value->op, SHAPE))
        value = tt_operand(value->op, 0);
    return (tt_def(value, OP_ext_s) || tt_def(value, OP_ext_u)) &&
           tt_bit_width(tt_operand(value->op, 0)->type) < 32;
}

/* Beside a constant what is narrow would have stayed narrow; and negative numbers are rounded, or taken for large ones. */
static void look_at_meeting(Ones *ones, const Op *op)
{
    for (int i = 0; i < 2; i++) {
        const Value *number = scalar_of(tt_operand(op, i));
        const Known *known = find(ones, number);
        if (known && ((known->value.i < 0 && !takes_negative(op)) || is_widened(tt_operand(op, 1 - i))))
            mark(ones, number);
    }
}

static void look_at(Ones *ones, const Op *op)
{
    enum { MOST = 3 };
    bool all = op->result_count == 1 && op->operand_count <= MOST && !op->region_count;
    bool any = false, differs = false;
    Known operands[MOST] = {0}, result;
    for (int i = 0; i < op->operand_count; i++) {
        const Known *known = find(ones, tt_operand(op, i));
        any |= known != NULL;
        differs |= known && known->differs;
        all = all && is_known(ones, tt_operand(op, i), &operands[i]);
    }
    if (op->operand_count == 2 && tt_has(op, ON_INTS))
        look_at_meeting(ones, op);
    bool is_scalar = all && !tt_is_tile(op->results[0]->type) && tt_has(op, PURE);
    if (any && op->opcode == OP_call)
        for (int i = 0; i < op->operand_count; i++)
            mark(ones, tt_operand(op, i));
    if (!any || !is_scalar || tt_has(op, SHAPE) || tt_is_ptr(op->results[0]->type))
        return;
    if (differs || !same_result(op, operands, &result))
        result = (Known){.differs = true};
    keep(ones, op->results[0], result);
    if (result.differs)
        mark(ones, op->results[0]);
}

static void look_in(Ones *ones, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            look_in(ones, op->regions[i]);
        Known condition, result;
        if (op->opcode != OP_if) {
            look_at(ones, op);
        } else if (find(ones, tt_operand(op, 0)) && is_known(ones, tt_operand(op, 0), &condition)) {
            const Op *end = tt_terminator(op->regions[condition.value.i ? 0 : 1]);
            for (int i = 0; i < op->result_count; i++)
                if (is_known(ones, tt_operand(end, i), &result))
                    keep(ones, op->results[i], result);
        }
    }
}

void tt_find_ones(const Function *kernel, bool *matters, Arena *arena)
{
    Ones ones = {.arena = arena, .kernel = kernel->body, .known = {.arena = arena}, .matters = matters};
    look_in(&ones, kernel->body);
}
