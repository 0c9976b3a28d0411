/* Which values are computed from which pointer parameters: a walk along the uses of each, through arithmetic on
 * pointers, loops, branches and calls. What is loaded through a pointer is another pointer and is not followed. */
#include "analysis/analysis.h"

enum { SEVERAL = -1 };

typedef struct Search {
    Map *origins; /* Value -> number of the parameter plus one, or SEVERAL; all parameters' */
    Map seen;     /* Value -> itself; this parameter's */
    TT_VECTOR(const Value *) todo;
    intptr_t origin;
    bool stores;
} Search;

static void follow(Search *search, const Value *value)
{
    /* Offsets, conditions and data that were computed from a pointer do not carry it: addresses are pointers or i64. */
    TypeKind kind = tt_element(value->type)->kind;
    if (kind != TT_PTR && kind != TT_I64)
        return;
    void **seen = tt_map_slot_ptr(&search->seen, value);
    if (*seen)
        return;
    *seen = (void *)value;
    tt_push(search->seen.arena, search->todo, value);
    void **origin = tt_map_slot_ptr(search->origins, value);
    *origin = (void *)(*origin ? SEVERAL : search->origin);
}

static void follow_results(Search *search, const Op *op)
{
    for (int i = 0; i < op->result_count; i++)
        follow(search, op->results[i]);
}

/* Value `number` of those an operation with regions carries: a result, and the last arguments of its regions. */
static void follow_carried(Search *search, const Op *op, int number)
{
    if (number < 0 || number >= op->result_count)
        return;
    follow(search, op->results[number]);
    for (int i = 0; i < op->region_count; i++) {
        const Region *region = op->regions[i];
        if (region->arg_count >= op->result_count)
            follow(search, region->args[region->arg_count - op->result_count + number]);
    }
}

static void follow_call(Search *search, const Op *call, int operand)
{
    const Function *callee =
        tt_find_function(call->parent->function->module, tt_string_attr(call, ATTR_callee, ""));
    TT_ASSERT(callee && operand < callee->body->arg_count);
    follow(search, callee->body->args[operand]);
    follow_results(search, call);
}

static void visit_use(Search *search, const Op *user, int operand)
{
    if (user->opcode == OP_call)
        follow_call(search, user, operand);
    else if (tt_has(user, WRITES))
        search->stores |= operand == 0;
    else if (tt_has(user, TERMINATOR) && user->parent->op)
        follow_carried(search, user->parent->op, operand);
    else if (user->region_count)
        follow_carried(search, user, operand - (user->operand_count - user->result_count));
    else if (!tt_has(user, READS))
        follow_results(search, user);
}

static int operand_index(const Use *use) { return (int)(use - use->user->operands); }

/* Can anything be stored through this parameter? Notes the parameter as the origin of all that is computed from it. */
static bool trace(const Function *function, int param, Map *origins, Arena *arena)
{
    Search search = {.origins = origins, .seen = {.arena = arena}, .origin = param + 1};
    if (tt_is_ptr(function->body->args[param]->type))
        follow(&search, function->body->args[param]);
    while (search.todo.count) {
        const Value *value = search.todo.data[--search.todo.count];
        TT_FOR_USES(use, value)
        visit_use(&search, use->user, operand_index(use));
    }
    return search.stores;
}

ParamPointers *tt_analyze_param_pointers(const Function *function, Arena *arena)
{
    ParamPointers *pointers = TT_NEW(arena, ParamPointers);
    pointers->origins.arena = arena;
    pointers->stored = TT_NEW_ARRAY(arena, bool, function->body->arg_count);
    for (int i = 0; i < function->body->arg_count; i++)
        pointers->stored[i] = trace(function, i, &pointers->origins, arena);
    return pointers;
}

int tt_pointer_param(const ParamPointers *pointers, const Value *value)
{
    intptr_t origin = (intptr_t)tt_map_find_ptr(&pointers->origins, value);
    return origin > 0 ? (int)origin - 1 : -1;
}
