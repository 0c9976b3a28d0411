/* Variables, and their values where two sides meet. */
#include "triton_c/walker.h"

int tt_c_find_slot(const Frame *frame, const char *name)
{
    for (int i = frame->slots.count - 1; i >= FIRST_VARIABLE; i--)
        if (frame->slots.data[i].name && !strcmp(frame->slots.data[i].name, name))
            return i;
    return -1;
}

Variable *tt_c_find_variable(CWalker *w, const char *name)
{
    int slot = w->frame ? tt_c_find_slot(w->frame, name) : -1;
    if (slot >= 0)
        return &w->frame->slots.data[slot];
    for (int i = 0; i < w->globals.count; i++)
        if (!strcmp(w->globals.data[i].name, name))
            return &w->globals.data[i];
    return NULL;
}

int tt_c_add_slot(CWalker *w, const char *name, const Dtype *dtype, const Shape *shape, Value *value)
{
    Variable variable = {.name = name,
                         .dtype = dtype,
                         .shape = shape ? *shape : (Shape){0},
                         .value = value,
                         .loc = w->builder.loc};
    tt_push(w->arena, w->frame->slots, variable);
    return w->frame->slots.count - 1;
}

void tt_c_end_scope(CWalker *w, int slots) { w->frame->slots.count = slots; }

void tt_c_assign(CWalker *w, Variable *variable, Operand x)
{
    const char *what = tt_arena_format(w->arena, "`%s`", variable->name);
    bool is_older = variable - w->frame->slots.data < w->frame->first_free;
    x = tt_c_broadcast(w, what, tt_c_convert(w, what, x, variable->dtype), &variable->shape);
    if (w->mask && is_older && variable->value) {
        Operand mask = {w->mask, &tt_int1, false};
        mask = tt_c_broadcast(w, what, mask, &variable->shape);
        x.value = tt_build3(&w->builder, OP_select, mask.value, x.value, variable->value);
    }
    variable->value = x.value;
    if (x.value->op && !x.value->name)
        x.value->name = tt_intern(w->module, variable->name);
}

/* ---- two sides ------------------------------------------------------------------------------------------------------- */

static Value **copy_values(CWalker *w, int count)
{
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    for (int i = 0; i < count; i++)
        values[i] = w->frame->slots.data[i].value;
    return values;
}

static void set_values(CWalker *w, Value *const *values, int count)
{
    w->frame->slots.count = count;
    for (int i = 0; i < count; i++)
        w->frame->slots.data[i].value = values[i];
}

Join tt_c_begin_if(CWalker *w, Value *condition)
{
    Join join = {.slots = w->frame->slots.count};
    join.before = copy_values(w, join.slots);
    join.op = tt_build_op(&w->builder, OP_if, &condition, 1, NULL, 0, NULL);
    for (int i = 0; i < 2; i++)
        join.sides[i] = (Side){join.op->regions[i], join.before, FALLS};
    return join;
}

/* Beginning a side again goes on at its end. */
void tt_c_begin_side(CWalker *w, Join *join, int side)
{
    set_values(w, join->sides[side].values, join->slots);
    w->builder.region = join->sides[side].region;
}

void tt_c_end_side(CWalker *w, Join *join, int side, Flow flow)
{
    join->sides[side].values = copy_values(w, join->slots);
    join->sides[side].flow = flow;
    w->builder.region = join->op->parent;
}

void tt_c_end_if(CWalker *w, Join *join, Value **results[2], int count)
{
    TT_VECTOR(Value *) yields[2] = {0};
    Region *outer = join->op->parent;
    Value **joined = TT_NEW_ARRAY(w->arena, Value *, join->slots);
    for (int i = 0; i < join->slots + count; i++) {
        bool is_slot = i < join->slots;
        Value *pair[2];
        for (int side = 0; side < 2; side++)
            pair[side] = is_slot ? join->sides[side].values[i] : results[side][i - join->slots];
        Value *met = pair[0];
        for (int side = 0; side < 2; side++)
            if (!pair[side] && pair[!side]) { /* has no value yet on this side */
                w->builder.region = join->sides[side].region;
                pair[side] = tt_build_filler(&w->builder, pair[!side]->type);
            }
        if (pair[0] != pair[1]) {
            for (int side = 0; side < 2; side++)
                tt_push(w->arena, yields[side], pair[side]);
            met = tt_add_result(join->op, pair[0]->type);
            met->name = pair[0]->name ? pair[0]->name : pair[1]->name;
        }
        if (is_slot)
            joined[i] = met;
        else
            results[0][i - join->slots] = met;
    }
    for (int side = 0; side < 2; side++) {
        if (side == 1 && !join->op->result_count && !join->sides[1].region->first)
            break; /* no `else` */
        w->builder.region = join->sides[side].region;
        tt_build_op(&w->builder, OP_yield, yields[side].data, yields[side].count, NULL, 0, NULL);
    }
    w->builder.region = outer;
    set_values(w, joined, join->slots);
}

void tt_c_move_out(Op *op)
{
    for (int i = 0; i < op->region_count; i++)
        TT_FOR_OPS_SAFE(inner, op->regions[i])
    tt_move_before(inner, op);
    tt_erase_op(op);
}

/* May it run although its side is not taken? */
bool tt_c_is_harmless(const Region *region)
{
    TT_FOR_OPS(op, region)
    if (!tt_has(op, PURE) || tt_has(op, COSTLY))
        return false;
    return true;
}

/* ---- what a subtree does ------------------------------------------------------------------------------------------------ */

static void add_uses(const Node *node, Uses *uses, bool in_loop);

static void add_uses_of(const Nodes *nodes, Uses *uses, bool in_loop)
{
    for (int i = 0; i < nodes->count; i++)
        add_uses(nodes->data[i], uses, in_loop);
}

static void add_uses(const Node *node, Uses *uses, bool in_loop)
{
    if (!node)
        return;
    const Builtin *builtin = node->kind == NODE_CALL ? tt_c_builtin(node->name) : NULL;
    bool loops = node->kind == NODE_FOR || node->kind == NODE_WHILE;
    uses->assigns |= node->kind == NODE_ASSIGN || node->kind == NODE_STEP;
    uses->reads_memory |= node->kind == NODE_LOAD || node->kind == NODE_INDEX;
    uses->calls |= node->kind == NODE_CALL && !(builtin && builtin->is_arithmetic);
    uses->breaks |= node->kind == NODE_BREAK && !in_loop;
    uses->returns |= node->kind == NODE_RETURN;
    const Node *children[] = {node->first, node->second, node->third, node->body};
    for (size_t i = 0; i < TT_COUNT(children); i++)
        add_uses(children[i], uses, in_loop || loops);
    add_uses_of(&node->items, uses, in_loop);
    add_uses_of(&node->arguments, uses, in_loop);
}

Uses tt_c_uses(const Node *node)
{
    Uses uses = {0};
    add_uses(node, &uses, false);
    return uses;
}

/* Names that the subtree declares hide older ones. */
typedef struct Search {
    CWalker *w;
    TT_VECTOR(const char *) hidden;
    Slots *slots;
} Search;

static bool is_hidden(const Search *s, const char *name)
{
    for (int i = 0; i < s->hidden.count; i++)
        if (!strcmp(s->hidden.data[i], name))
            return true;
    return false;
}

static void note_assigned(Search *s, const char *name)
{
    int slot = is_hidden(s, name) ? -1 : tt_c_find_slot(s->w->frame, name), at = 0;
    if (slot < 0)
        return;
    while (at < s->slots->count && s->slots->data[at] < slot)
        at++;
    if (at < s->slots->count && s->slots->data[at] == slot)
        return;
    tt_push(s->w->arena, *s->slots, slot);
    for (int i = s->slots->count - 1; i > at; i--)
        s->slots->data[i] = s->slots->data[i - 1];
    s->slots->data[at] = slot;
}

static void search(Search *s, const Node *node)
{
    if (!node)
        return;
    int mark = s->hidden.count;
    bool has_scope = node->kind == NODE_BLOCK || node->kind == NODE_FOR;
    if ((node->kind == NODE_ASSIGN || node->kind == NODE_STEP) && node->first->kind == NODE_NAME)
        note_assigned(s, node->first->name);
    for (int i = 0; i < node->items.count; i++)
        search(s, node->items.data[i]);
    for (int i = 0; i < node->arguments.count; i++)
        search(s, node->arguments.data[i]);
    const Node *children[] = {node->first, node->second, node->third, node->body};
    for (size_t i = 0; i < TT_COUNT(children); i++)
        search(s, children[i]);
    if (node->kind == NODE_DECLARE && node->declaration)
        tt_push(s->w->arena, s->hidden, node->declaration->name);
    if (has_scope)
        s->hidden.count = mark;
}

void tt_c_assigned_slots(CWalker *w, const Node *node, Slots *slots)
{
    Search s = {.w = w, .slots = slots};
    search(&s, node);
}
