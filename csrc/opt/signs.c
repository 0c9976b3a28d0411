/* Divisions that divide nothing negative in the launches that the code is for. Rounding toward zero breaks the groups of
 * neighbours that a tile is divided into where it begins below zero, and memory would be accessed element by element. Of
 * many a tile only a launch's numbers say that it does not: a matrix product counts its tiles in groups of rows, and the
 * last group has `rows - first` of them, which is negative in a grid that is larger than the product. So these divisions
 * are marked, with the fact that proves it; what is not proved of a launch is unmarked in the code for it. */
#include "analysis/offsets.h"
#include "opt/pass.h"

typedef struct Signs {
    Offsets *offsets;
    AxisInfos *axes;
    bool found;
} Signs;

static bool is_division(const Op *op) { return tt_has(op, TRUNCATES) && tt_is_tile(op->results[0]->type); }

static bool has_groups(const AxisInfo *info)
{
    for (int dim = 0; dim < info->rank; dim++)
        if (info->contiguity[dim] > 1)
            return true;
    return false;
}

static void look_for_divisions(Op *op, void *context) { *(bool *)context |= is_division(op); }

static void mark(Op *op, void *context)
{
    Signs *signs = context;
    if (!is_division(op))
        return;
    const Value *divided = tt_operand(op, 0);
    const AxisInfo *info = tt_axis_info(signs->axes, divided);
    if (info->sign == SIGN_NOT_NEGATIVE || info->sign == SIGN_UNKNOWN || !has_groups(info) ||
        !tt_offset_has_bounds(signs->offsets, op->results[0]) ||
        !tt_offset_has_bounds(signs->offsets, divided))
        return;
    Module *module = op->parent->function->module;
    int64_t fact = info->sign == SIGN_BY_DIVISORS ? FACT_DIVISORS : FACT_STARTS;
    tt_set_attr(op, tt_attr_int(module, ATTR_whole, fact, NULL));
    signs->found = true;
}

bool tt_opt_signs(Function *function, Arena *scratch)
{
    bool divides = false;
    tt_walk(function->body, look_for_divisions, &divides);
    if (!function->is_kernel || !divides)
        return false;
    Signs signs = {.offsets = tt_analyze_offsets(function, scratch),
                   .axes = tt_analyze_axis_info(function, scratch)};
    tt_walk(function->body, mark, &signs);
    return signs.found;
}

static void unmark(Op *op, void *context)
{
    unsigned facts = *(unsigned *)context;
    if (!(facts & (unsigned)tt_int_attr(op, ATTR_whole, 0)))
        tt_remove_attr(op, ATTR_whole);
}

void tt_forget_signs(Function *function, unsigned facts) { tt_walk(function->body, unmark, &facts); }
