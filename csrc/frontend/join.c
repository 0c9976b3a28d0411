/* Where two sides of an `if` meet: each name that differs becomes a result of the operation, stays a compile-time value
 * that both sides agree on, or has no value from here on (and an error that says why, should it be used). */
#include "frontend/walker.h"

/* ---- values in terms ------------------------------------------------------------------------------------------------ */

void tt_flatten(Walker *w, Term t, Value **values, int *count)
{
    if (t.kind == TERM_VALUE)
        values[(*count)++] = t.value;
    else if (t.kind != TERM_UNDEFINED && t.kind != TERM_PYTHON)
        for (int i = 0; i < t.count; i++)
            tt_flatten(w, t.items[i], values, count);
}

int tt_count_values(Term t)
{
    if (t.kind == TERM_VALUE)
        return 1;
    int count = 0;
    if (t.kind != TERM_UNDEFINED && t.kind != TERM_PYTHON)
        for (int i = 0; i < t.count; i++)
            count += tt_count_values(t.items[i]);
    return count;
}

Term tt_rebuild(Walker *w, Term shape, Value *const *values, int *next)
{
    if (shape.kind == TERM_VALUE) {
        shape.value = values[(*next)++];
    } else if (tt_has_values(shape)) {
        Term *items = TT_NEW_ARRAY(w->arena, Term, shape.count);
        for (int i = 0; i < shape.count; i++)
            items[i] = tt_rebuild(w, shape.items[i], values, next);
        shape.items = items;
    }
    return shape;
}

static bool fits(PyObject *number, const Dtype *dtype)
{
    int overflow, bits = (int[]){[TT_I8] = 8, [TT_I16] = 16, [TT_I32] = 32, [TT_I64] = 64}[dtype->kind];
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow)
        return false;
    if (dtype->is_unsigned)
        return value >= 0 && (bits == 64 || value >> bits == 0);
    return bits == 64 || (value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1));
}

bool tt_adopt(Walker *w, Term number, const Dtype *dtype, Term *out)
{
    if (!tt_is_number(number) || dtype->kind >= TT_PTR)
        return false;
    PyObject *object = number.object;
    if (tt_dtype_is_float(dtype) && dtype != &tt_fp64 && tt_number_dtype(w, number) == &tt_fp64)
        return false;
    bool is_bool = Py_IS_TYPE(object, &PyBool_Type);
    if (tt_dtype_is_bool(dtype) ? !is_bool
                                : tt_dtype_is_int(dtype) && (!PyLong_Check(object) || !fits(object, dtype)))
        return false;
    *out = tt_number_value(w, number, dtype);
    return true;
}

/* ---- terms ---------------------------------------------------------------------------------------------------------- */

/* A number of side `index`, made a value there with the dtype of the other side's term. */
static bool adopt_in_side(Walker *w, Join *join, int index, Term number, Term like, Term *out)
{
    if (like.kind != TERM_VALUE || tt_is_tile(like.value->type))
        return false;
    Region *region = w->builder.region;
    w->builder.region = join->sides[index].region;
    bool done = tt_adopt(w, number, like.dtype, out);
    w->builder.region = region;
    return done;
}

/* Two different numbers: values of the dtype that holds both. */
static bool join_numbers(Walker *w, Join *join, Term a, Term b, Term *out)
{
    const Dtype *dtypes[] = {tt_number_dtype(w, a), tt_number_dtype(w, b)};
    Region *region = w->builder.region;
    bool done = false;
    Term pair[2];
    for (int i = 0; i < 2 && !done; i++) {
        w->builder.region = join->sides[0].region;
        done = tt_adopt(w, a, dtypes[i], &pair[0]);
        w->builder.region = join->sides[1].region;
        done = done && tt_adopt(w, b, dtypes[i], &pair[1]);
    }
    w->builder.region = region;
    return done && tt_join_terms(w, join, pair[0], pair[1], out);
}

static Value *equal_constants(Walker *w, Value *a, Value *b)
{
    int64_t ia, ib;
    double fa, fb;
    if (tt_is_tile(a->type))
        return NULL;
    if (tt_is_int(a->type) && tt_constant_int(a, &ia) && tt_constant_int(b, &ib) && ia == ib)
        return tt_build_int(&w->builder, a->type, ia);
    if (tt_is_float(a->type) && tt_constant_float(a, &fa) && tt_constant_float(b, &fb) &&
        !memcmp(&fa, &fb, sizeof fa))
        return tt_build_float(&w->builder, a->type, fa);
    return NULL;
}

static Value *add_pair(Walker *w, Join *join, Value *a, Value *b)
{
    tt_push(w->arena, join->yields[0], a);
    tt_push(w->arena, join->yields[1], b);
    Value *result = tt_add_result(join->op, a->type);
    result->name = a->name ? a->name : b->name;
    return result;
}

static bool join_items(Walker *w, Join *join, Term a, Term b, Term *out)
{
    if (a.count != b.count || (a.kind != TERM_BLOCK_POINTER && a.object != b.object))
        return false;
    if (a.kind == TERM_BLOCK_POINTER && memcmp(a.block, b.block, sizeof *a.block))
        return false;
    *out = a;
    out->items = TT_NEW_ARRAY(w->arena, Term, a.count);
    for (int i = 0; i < a.count; i++) {
        bool differs = tt_is_constexpr_field(w, a, i) && !tt_same_term(w, a.items[i], b.items[i]);
        if (differs || !tt_join_terms(w, join, a.items[i], b.items[i], &out->items[i]))
            return false;
    }
    return true;
}

static bool join_different(Walker *w, Join *join, Term a, Term b, Term *out)
{
    if (a.kind == TERM_VALUE && b.kind == TERM_VALUE) {
        if (a.value->type != b.value->type || a.dtype != b.dtype)
            return false;
        Value *constant = equal_constants(w, a.value, b.value);
        *out = tt_value_term(constant ? constant : add_pair(w, join, a.value, b.value), a.dtype);
        return true;
    }
    Term adopted;
    if (tt_is_number(a) && tt_is_number(b))
        return join_numbers(w, join, a, b, out);
    if (adopt_in_side(w, join, 0, a, b, &adopted))
        return tt_join_terms(w, join, adopted, b, out);
    if (adopt_in_side(w, join, 1, b, a, &adopted))
        return tt_join_terms(w, join, a, adopted, out);
    return a.kind == b.kind && a.kind >= TERM_TUPLE && join_items(w, join, a, b, out);
}

bool tt_join_terms(Walker *w, Join *join, Term a, Term b, Term *out)
{
    if (tt_same_term(w, a, b)) {
        *out = a;
        return true;
    }
    int results = join->op->result_count;
    if (join_different(w, join, a, b, out))
        return true;
    while (join->op->result_count > results) { /* of items before the one that failed */
        tt_remove_result(join->op, join->op->result_count - 1);
        join->yields[0].count--;
        join->yields[1].count--;
    }
    return false;
}

/* ---- bindings ------------------------------------------------------------------------------------------------------- */

static Binding binding_at(const Bindings *bindings, int slot)
{
    return slot < bindings->count ? bindings->data[slot] : (Binding){0};
}

/* A term that counts on one side only: what was made inside the region leaves it as a result. */
static Term take_side(Walker *w, Join *join, int side, Term t)
{
    int count = tt_count_values(t), flat = 0, next = 0;
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    tt_flatten(w, t, values, &flat);
    Region *region = w->builder.region;
    for (int i = 0; i < count; i++) {
        if (tt_is_defined_outside(values[i], join->sides[side].region))
            continue;
        w->builder.region = join->sides[!side].region;
        Value *filler = tt_build_filler(&w->builder, values[i]->type);
        w->builder.region = region;
        values[i] = add_pair(w, join, side ? filler : values[i], side ? values[i] : filler);
    }
    return tt_rebuild(w, t, values, &next);
}

static Binding undefined(Walker *w, const Join *join, Binding a, Binding b)
{
    if (a.term.kind == TERM_UNDEFINED && a.term.undefined)
        return a; /* the older reason is the better one */
    if (b.term.kind == TERM_UNDEFINED && b.term.undefined)
        return b;
    Undefined *why = TT_NEW(w->arena, Undefined);
    bool both = a.term.kind != TERM_UNDEFINED && b.term.kind != TERM_UNDEFINED;
    if (!both && a.term.kind == TERM_UNDEFINED)
        a = b;
    *why = (Undefined){.kind = both ? UNDEFINED_MISMATCH : UNDEFINED_ONE_BRANCH,
                       .loc = join->loc,
                       .a = a.term,
                       .b = b.term,
                       .a_loc = a.loc,
                       .b_loc = b.loc};
    return (Binding){.term = {.kind = TERM_UNDEFINED, .undefined = why}, .loc = join->loc};
}

static Binding join_binding(Walker *w, Join *join, Binding a, Binding b, bool a_lives, bool b_lives)
{
    bool a_defined = a.term.kind != TERM_UNDEFINED, b_defined = b.term.kind != TERM_UNDEFINED;
    if (!a_lives && !b_lives)
        return (Binding){0};
    if (a_defined == b_defined && tt_same_term(w, a.term, b.term) &&
        (a_defined || a.term.undefined == b.term.undefined)) {
        if (a.entry != b.entry)
            a.entry = NULL;
        return a;
    }
    if (join->is_lenient && a_defined != b_defined) {
        a_lives = a_defined;
        b_lives = b_defined;
    }
    if (!b_lives || !a_lives) {
        Binding live = a_lives ? a : b;
        live.term = take_side(w, join, a_lives ? 0 : 1, live.term);
        return live;
    }
    Binding joined = {.loc = a.entry ? b.loc : a.loc};
    if (a_defined && b_defined && tt_join_terms(w, join, a.term, b.term, &joined.term))
        return joined;
    return undefined(w, join, a, b);
}

static _Noreturn void results_differ(Walker *w, Binding a, Binding b)
{
    const char *name = w->state->frame->info->signature.name;
    const char *ta = tt_describe(w, a.term), *tb = tt_describe(w, b.term);
    Diagnostic diag = {.kind = TT_USER_ERROR, .loc = b.loc};
    diag.message =
        tt_arena_format(w->arena, "Inconsistent return types: `%s` returns %s here, but %s in line %d", name,
                        tb, ta, a.loc->line);
    diag.remedy = "make all returns give one type, with .to(...) for instance";
    diag.notes[diag.note_count++] = (DiagNote){a.loc, tt_arena_format(w->arena, "%s here", ta)};
    tt_raise(&diag);
}

static void join_exits(Walker *w, Join *join, Bindings *out, Flow tail)
{
    static const Flow flows[] = {
        [SLOT_RETURNED] = RETURNS, [SLOT_BROKE] = BREAKS, [SLOT_CONTINUED] = CONTINUES};
    const Side *sides = join->sides;
    Flow needed = (sides[0].flow | sides[1].flow) & ~tail;
    for (int slot = SLOT_RETURNED; slot <= SLOT_CONTINUED; slot++) {
        Term term = tt_bool_term(w, false);
        if (needed & flows[slot])
            tt_join_terms(w, join, sides[0].bindings.data[slot].term, sides[1].bindings.data[slot].term,
                          &term);
        out->data[slot] = (Binding){.term = term};
    }
    Binding a = sides[0].bindings.data[SLOT_RESULT], b = sides[1].bindings.data[SLOT_RESULT];
    bool a_lives = sides[0].flow & RETURNS, b_lives = sides[1].flow & RETURNS;
    Binding result = join_binding(w, join, a, b, a_lives, b_lives);
    if (a_lives && b_lives && result.term.kind == TERM_UNDEFINED)
        results_differ(w, a, b);
    out->data[SLOT_RESULT] = result;
}

/* One side has what a loop before or on this side gave the name, the other has a value. */
static void take_out_of_loop(Walker *w, const Side *side, int slot, Binding *binding, Binding other)
{
    if (binding->term.kind != TERM_UNDEFINED || other.term.kind == TERM_UNDEFINED)
        return;
    Region *region = w->builder.region;
    w->builder.region = side->region;
    tt_take_out_of_loop(w, w->state->frame->scope.names.data[slot], binding);
    w->builder.region = region;
}

/* Builds the yields. */
static void end_join(Walker *w, Join *join)
{
    Region *region = w->builder.region;
    bool has_results = join->op->result_count > 0;
    for (int i = 0; i < 2; i++) {
        if (i == 1 && !has_results && !join->sides[1].region->first)
            break; /* no `else` */
        w->builder.region = join->sides[i].region;
        tt_build_op(&w->builder, OP_yield, join->yields[i].data, join->yields[i].count, NULL, 0, NULL);
    }
    w->builder.region = region;
}

void tt_join_bindings(Walker *w, Join *join, Flow tail)
{
    const Side *sides = join->sides;
    Flow dead = RETURNS | (tail & FALLS); /* after these exits no name of this function is read */
    bool a_lives = sides[0].flow & ~dead, b_lives = sides[1].flow & ~dead;
    int count = TT_MAX(sides[0].bindings.count, sides[1].bindings.count);
    Bindings out = {TT_NEW_ARRAY(w->arena, Binding, count), count, count};
    join_exits(w, join, &out, tail);
    for (int slot = FIRST_NAME_SLOT; slot < count; slot++) {
        Binding a = binding_at(&sides[0].bindings, slot), b = binding_at(&sides[1].bindings, slot);
        if (a_lives && b_lives) {
            take_out_of_loop(w, &sides[0], slot, &a, b);
            take_out_of_loop(w, &sides[1], slot, &b, a);
        }
        out.data[slot] = join_binding(w, join, a, b, a_lives, b_lives);
    }
    w->state->frame->scope.now = out;
    end_join(w, join);
}
