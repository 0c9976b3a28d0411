/* Numbers that a kernel computes with by other rules when they are one. A one is a constant, and constants are computed as
 * Python does: quotients round down, nothing wraps around, floats are doubles, and a constant takes the width of what it
 * meets. A variant that knows nothing of the one computes as kernels do. So what follows from numbers and constants alone is
 * computed here by both, every number being one; where they differ, or might, the numbers matter. */
#include "analysis/analysis.h"

typedef __int128 Wide;

/* What a scalar is if all numbers are one. */
typedef struct Known {
    bool is_real, differs, is_marked;
    Wide integer; /* of an i1: 0 or 1 */
    double real;
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
    return found || !is_number ? found : keep(ones, value, (Known){.integer = 1});
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
        known->integer = tt_is_bool(value->type) ? integer & 1 : integer;
        return true;
    }
    known->is_real = tt_constant_float(value, &known->real);
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
static bool fits(Wide number, const Type *type)
{
    int bits = tt_bit_width(type);
    return bits == 1 ? number == 0 || number == 1 : number >> (bits - 2) == 0 || number >> (bits - 2) == -1;
}

static bool integer_result(Opcode opcode, Wide a, Wide b, Wide *result)
{
    switch (opcode) {
    case OP_add:
        *result = a + b;
        return true;
    case OP_sub:
        *result = a - b;
        return true;
    case OP_mul:
        *result = a * b;
        return true;
    case OP_div_u:
    case OP_div_s: /* or it is exact */
        *result = b ? a / b : 0;
        return b && ((a >= 0 && b > 0) || a % b == 0);
    case OP_rem_u:
    case OP_rem_s:
        *result = b ? a % b : 0;
        return b && ((a >= 0 && b > 0) || a % b == 0);
    case OP_and:
        *result = a & b;
        return true;
    case OP_or:
        *result = a | b;
        return true;
    case OP_xor:
        *result = a ^ b;
        return true;
    case OP_shl:
        *result = b >= 0 && b < 64 ? a * ((Wide)1 << b) : 0;
        return b >= 0 && b < 64;
    case OP_shr_u:
    case OP_shr_s:
        *result = b >= 0 && b < 64 ? a >> b : 0;
        return b >= 0 && b < 64;
    case OP_min_u:
    case OP_min_s:
        *result = a < b ? a : b;
        return true;
    case OP_max_u:
    case OP_max_s:
        *result = a > b ? a : b;
        return true;
    case OP_eq:
        *result = a == b;
        return true;
    case OP_ne:
        *result = a != b;
        return true;
    case OP_lt_u:
    case OP_lt_s:
        *result = a < b;
        return true;
    case OP_le_u:
    case OP_le_s:
        *result = a <= b;
        return true;
    case OP_gt_u:
    case OP_gt_s:
        *result = a > b;
        return true;
    case OP_ge_u:
    case OP_ge_s:
        *result = a >= b;
        return true;
    default:
        return false;
    }
}

static bool is_unsigned(Opcode opcode)
{
    switch (opcode) {
    case OP_div_u:
    case OP_rem_u:
    case OP_shr_u:
    case OP_min_u:
    case OP_max_u:
    case OP_lt_u:
    case OP_le_u:
    case OP_gt_u:
    case OP_ge_u:
    case OP_ext_u:
    case OP_int_to_float_u:
        return true;
    default:
        return false;
    }
}

/* A float that one of this type holds: then rounding does nothing. */
static bool holds(double number, const Type *type)
{
    switch (type->kind) {
    case TT_F64:
        return true;
    case TT_F32:
        return (float)number == number;
    default: /* up to 2^8, which the narrowest for arithmetic have, too */
        return number == (double)(int)number && number >= -256 && number <= 256;
    }
}

static bool real_result(Opcode opcode, double a, double b, double *result)
{
    switch (opcode) {
    case OP_fadd:
        *result = a + b;
        return true;
    case OP_fsub:
        *result = a - b;
        return true;
    case OP_fmul:
        *result = a * b;
        return true;
    case OP_fdiv:
    case OP_fdiv_rn:
        *result = b != 0 ? a / b : 0;
        return b != 0;
    default:
        return false;
    }
}

/* What both rules give; false if they may differ. */
static bool same_result(const Op *op, const Known *operands, Known *result)
{
    const Type *type = op->results[0]->type;
    const Known *a = &operands[0], *b = &operands[op->operand_count > 1];
    switch (op->opcode) {
    case OP_hint:
        *result = *a;
        return true;
    case OP_trunc:
    case OP_ext_s:
    case OP_ext_u:
        *result = (Known){.integer = a->integer};
        return fits(a->integer, type) && (!is_unsigned(op->opcode) || a->integer >= 0) &&
               (op->opcode != OP_ext_s || !tt_is_bool(tt_operand(op, 0)->type));
    case OP_int_to_float_s:
    case OP_int_to_float_u:
        *result = (Known){.is_real = true, .real = (double)a->integer};
        return (Wide)result->real == a->integer && holds(result->real, type) &&
               (!is_unsigned(op->opcode) || a->integer >= 0);
    case OP_float_cast:
        *result = *a;
        return holds(a->real, type);
    case OP_select:
        *result = operands[a->integer ? 1 : 2];
        return true;
    default:
        if (is_unsigned(op->opcode) && (a->integer < 0 || b->integer < 0))
            return false;
        *result = (Known){.is_real = a->is_real};
        if (a->is_real)
            return real_result(op->opcode, a->real, b->real, &result->real) && holds(result->real, type);
        return op->operand_count == 2 &&
               integer_result(op->opcode, a->integer, b->integer, &result->integer) &&
               fits(result->integer, type);
    }
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

/* Beside a constant what is narrow would have stayed narrow; and an unsigned operation takes a negative number as a large one. */
static void look_at_meeting(Ones *ones, const Op *op)
{
    for (int i = 0; i < 2; i++) {
        const Value *number = scalar_of(tt_operand(op, i));
        const Known *known = find(ones, number);
        if (known && ((known->integer < 0 && is_unsigned(op->opcode)) || is_widened(tt_operand(op, 1 - i))))
            mark(ones, number);
    }
}

static void look_at(Ones *ones, const Op *op)
{
    enum { MOST = 3 };
    bool all =
             op->result_count == 1 && op->operand_count > 0 && op->operand_count <= MOST && !op->region_count,
         any = false;
    bool differs = false;
    Known operands[MOST] = {0}, result = {.differs = true};
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
            const Op *end = tt_terminator(op->regions[condition.integer ? 0 : 1]);
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
