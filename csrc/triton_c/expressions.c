/* Expressions. Operands are walked from left to right. */
#include "triton_c/walker.h"

enum { MOST_STEPS = 1 << 19, MOST_STACK = 3 << 20 };

/* "`+`" */
static const char *quoted(CWalker *w, Operator op)
{
    return tt_arena_format(w->arena, "`%s`", tt_c_operator_texts[op]);
}

static bool is_pointer(Operand x) { return x.value && tt_dtype_is_pointer(x.dtype); }

/* ---- arithmetic -------------------------------------------------------------------------------------------------------- */

static Operand pointer_arithmetic(CWalker *w, Operator op, Operand x, Operand y)
{
    Operand pair[] = {x, y};
    const char *what = quoted(w, op);
    bool moves = op == OPERATOR_ADD || op == OPERATOR_SUB, both = is_pointer(x) && is_pointer(y);
    if (tt_is_comparison(op)) {
        if (!both)
            for (int i = 0; i < 2; i++)
                if (!is_pointer(pair[i]))
                    pair[i] = tt_c_convert(w, what, pair[i], pair[!i].dtype);
        tt_c_broadcast_together(w, what, pair, 2);
        return tt_c_operand(
            tt_typed_compare_pointers(&w->builder, op, tt_c_typed(pair[0]), tt_c_typed(pair[1])));
    }
    if (!moves)
        tt_c_fail(w, "a pointer can be moved by integers with + and -; `*p` is what it points to",
                  "%s does not work on the pointer %s", what, tt_c_describe(w, is_pointer(x) ? x : y));
    if (both || (op == OPERATOR_SUB && is_pointer(y)))
        tt_c_fail(w, "convert both to int64 for the distance in bytes", "%s does not take %s and %s", what,
                  tt_c_describe(w, x), tt_c_describe(w, y));
    int at = is_pointer(x) ? 0 : 1;
    if (!pair[!at].value || !tt_dtype_is_int(pair[!at].dtype))
        tt_c_fail(w, "offsets of pointers are integers that count elements", "%s cannot move %s by %s", what,
                  tt_c_describe(w, pair[at]), tt_c_describe(w, pair[!at]));
    tt_c_broadcast_together(w, what, (Operand[]){pair[0], pair[1]}, 2); /* so that a mismatch is told */
    return tt_c_operand(
        tt_typed_move_pointer(&w->builder, op, tt_c_typed(pair[at]), tt_c_typed(tt_c_promote(w, pair[!at]))));
}

Operand tt_c_logical(CWalker *w, Operator op, Operand x, Operand y)
{
    Operand pair[] = {tt_c_truth(w, x), tt_c_truth(w, y)};
    tt_c_broadcast_together(w, quoted(w, op), pair, 2);
    return tt_c_operand(tt_typed_logical(&w->builder, op, tt_c_typed(pair[0]), tt_c_typed(pair[1])));
}

static void check_integers(CWalker *w, Operator op, Operand x, Operand y)
{
    if (tt_dtype_is_float(x.dtype) || tt_dtype_is_float(y.dtype))
        tt_c_fail(w, "convert to an integer type with a cast", "%s takes integers, not %s and %s",
                  quoted(w, op), tt_c_describe(w, x), tt_c_describe(w, y));
}

/* The type of a shift is that of its left side. */
static void prepare_shift(CWalker *w, Operator op, Operand pair[2])
{
    for (int i = 0; i < 2; i++)
        pair[i] = tt_c_promote(w, tt_c_settle(w, quoted(w, op), pair[i]));
    pair[1] = tt_c_cast(w, pair[1], pair[0].dtype);
}

static bool are_bools(Operand x, Operand y)
{
    return x.value && y.value && tt_dtype_is_bool(x.dtype) && tt_dtype_is_bool(y.dtype);
}

static Operand compute(CWalker *w, Operator op, Operand x, Operand y)
{
    const char *what = quoted(w, op);
    Operand pair[] = {x, y};
    bool shifts = op == OPERATOR_LSHIFT || op == OPERATOR_RSHIFT;
    if ((tt_is_bitwise(op) || op == OPERATOR_MOD) && x.value && y.value)
        check_integers(w, op, x, y);
    if (shifts)
        prepare_shift(w, op, pair);
    else if (!(tt_is_bitwise(op) && are_bools(x, y))) /* bools stay bools */
        tt_c_unify(w, what, &pair[0], &pair[1]);
    tt_c_broadcast_together(w, what, pair, 2);
    bool is_weak = pair[0].is_weak && pair[1].is_weak && !tt_is_comparison(op);
    if (op == OPERATOR_DIV && tt_dtype_is_int(pair[0].dtype))
        op = OPERATOR_FLOORDIV;
    if (w->request->checks_overflow)
        tt_typed_check_arithmetic(&w->builder, op, tt_c_typed(pair[0]), tt_c_typed(pair[1]), what);
    Operand result = tt_c_operand(tt_typed_binary(&w->builder, op, tt_c_typed(pair[0]), tt_c_typed(pair[1])));
    result.is_weak = is_weak;
    return result;
}

Operand tt_c_binary(CWalker *w, Operator op, Operand x, Operand y)
{
    if (op == OPERATOR_LOGICAL_AND || op == OPERATOR_LOGICAL_OR)
        return tt_c_logical(w, op, x, y);
    return is_pointer(x) || is_pointer(y) ? pointer_arithmetic(w, op, x, y) : compute(w, op, x, y);
}

static Operand walk_unary(CWalker *w, const Node *node)
{
    Operand x = tt_c_walk(w, node->first);
    tt_c_at(w, node);
    const char *what = quoted(w, node->op);
    if (node->op == OPERATOR_NOT)
        return tt_c_operand(tt_typed_not(&w->builder, tt_c_typed(tt_c_truth(w, x))));
    bool is_weak = x.value && x.is_weak;
    x = is_weak ? x : tt_c_settle(w, what, x);
    if (tt_dtype_is_pointer(x.dtype))
        tt_c_fail(w, "load what it points to with `*`", "%s does not work on the pointer %s", what,
                  tt_c_describe(w, x));
    if (node->op == OPERATOR_INVERT && !tt_dtype_is_int(x.dtype))
        tt_c_fail(w, "convert to an integer type with a cast", "`~` takes integers, not %s",
                  tt_c_describe(w, x));
    if (!(node->op == OPERATOR_INVERT && tt_dtype_is_bool(x.dtype)))
        x = tt_c_promote(w, x);
    if (node->op != OPERATOR_POS)
        x = tt_c_operand(node->op == OPERATOR_NEG ? tt_typed_negate(&w->builder, tt_c_typed(x))
                                                  : tt_typed_invert(&w->builder, tt_c_typed(x)));
    x.is_weak = is_weak;
    return x;
}

static Operand walk_binary(CWalker *w, const Node *node)
{
    if (node->op == OPERATOR_LOGICAL_AND || node->op == OPERATOR_LOGICAL_OR)
        return tt_c_walk_logical(w, node);
    Operand x = tt_c_walk(w, node->first), y = tt_c_walk(w, node->second);
    tt_c_at(w, node);
    return tt_c_binary(w, node->op, x, y);
}

/* ---- names, indices and memory ------------------------------------------------------------------------------------------ */

static _Noreturn void unknown_name(CWalker *w, const char *name)
{
    TT_VECTOR(const char *) names = {0};
    for (int i = FIRST_VARIABLE; w->frame && i < w->frame->slots.count; i++)
        tt_push(w->arena, names, w->frame->slots.data[i].name);
    for (int i = 0; i < w->globals.count; i++)
        tt_push(w->arena, names, w->globals.data[i].name);
    const char *closest = tt_c_closest(name, names.data, names.count);
    bool is_function = tt_c_builtin(name) != NULL;
    for (int i = 0; i < w->program->functions.count; i++)
        is_function |= !strcmp(w->program->functions.data[i]->name, name);
    if (is_function)
        tt_c_fail(w, "write parentheses behind it to call it", "`%s` is a function and has no value", name);
    tt_c_fail(w,
              closest ? tt_arena_format(w->arena, "did you mean `%s`?", closest) : "declare it, with a type",
              "`%s` is not declared", name);
}

static Variable *variable_of(CWalker *w, const Node *node)
{
    Variable *variable = tt_c_find_variable(w, node->name);
    if (!variable) {
        tt_c_at(w, node);
        unknown_name(w, node->name);
    }
    return variable;
}

static Operand walk_name(CWalker *w, const Node *node)
{
    const Variable *variable = variable_of(w, node);
    if (!variable->value) {
        Diagnostic diag = {.kind = TT_USER_ERROR,
                           .loc = tt_c_loc(w, &node->loc),
                           .remedy = "give it one where it is declared"};
        diag.message = tt_arena_format(w->arena, "`%s` is read before it has a value", node->name);
        diag.notes[diag.note_count++] = (DiagNote){variable->loc, "it is declared here"};
        tt_raise(&diag);
    }
    return (Operand){variable->value, variable->dtype, false};
}

static bool is_slice(const Node *node) { return node->kind == NODE_WHOLE || node->kind == NODE_NEWAXIS; }

/* x[:, newaxis]: dimensions stay, and new ones come in between. */
static Operand slice(CWalker *w, const Node *node, Operand x)
{
    int rank = tt_c_shape(x).rank, whole = 0;
    for (int i = 0; i < node->items.count; i++)
        whole += node->items.data[i]->kind == NODE_WHOLE;
    if (rank && whole != rank)
        tt_c_fail(w, "give one `:` for each dimension that there is, and newaxis for each new one",
                  "%s has %d dimension%s, and the index has %d `:`", tt_c_describe(w, x), rank,
                  rank == 1 ? "" : "s", whole);
    if (!rank && whole)
        tt_c_fail(w, NULL, "%s is a scalar and has no dimension for `:`", tt_c_describe(w, x));
    if (node->items.count > TT_MAX_RANK)
        tt_c_fail(w, NULL, "a tile has at most %d dimensions", TT_MAX_RANK);
    for (int i = 0; i < node->items.count; i++)
        if (node->items.data[i]->kind == NODE_NEWAXIS)
            x.value = tt_build_expand_dims(&w->builder, x.value, i);
    return x;
}

/* p[i] is *(p + i), where p is one pointer and i any integers. */
static Operand element_pointer(CWalker *w, const Node *node, Operand x)
{
    tt_c_at(w, node);
    if (!is_pointer(x) || node->items.count != 1 || is_slice(node->items.data[0]))
        tt_c_fail(w, "a tile takes `:` and newaxis, as in x[:, newaxis]; a pointer p[i] is *(p + i)",
                  "%s cannot be indexed like this", tt_c_describe(w, x));
    if (tt_is_tile(x.value->type))
        tt_c_fail(w, "add to the tile of pointers, and load: *(p + i)",
                  "%s is a tile, and elements of tiles cannot be picked", tt_c_describe(w, x));
    Operand index = tt_c_walk(w, node->items.data[0]);
    tt_c_at(w, node);
    return tt_c_binary(w, OPERATOR_ADD, x, index);
}

static bool is_slicing(const Node *node)
{
    for (int i = 0; i < node->items.count; i++)
        if (!is_slice(node->items.data[i]))
            return false;
    return true;
}

static Operand walk_index(CWalker *w, const Node *node)
{
    Operand x = tt_c_walk(w, node->first);
    tt_c_at(w, node);
    x = tt_c_settle(w, "an index", x);
    return is_slicing(node) ? slice(w, node, x) : tt_c_load(w, element_pointer(w, node, x));
}

/* ---- assignments --------------------------------------------------------------------------------------------------------- */

/* Where an assignment goes: a variable, or memory. */
typedef struct Target {
    const char *name; /* the variable may move while its new value is walked */
    Operand pointer;
} Target;

static Target walk_target(CWalker *w, const Node *node)
{
    if (node->kind == NODE_NAME) {
        const Variable *variable = variable_of(w, node);
        tt_c_at(w, node);
        bool is_global = tt_c_find_slot(w->frame, node->name) < 0;
        if (variable->is_const || is_global)
            tt_c_fail(w, "leave const out, or take another variable", "`%s` is constant", node->name);
        return (Target){.name = node->name};
    }
    if (node->kind == NODE_LOAD)
        return (Target){.pointer = tt_c_walk(w, node->first)};
    if (node->kind == NODE_INDEX && !is_slicing(node)) {
        Operand x = tt_c_walk(w, node->first);
        return (Target){.pointer = element_pointer(w, node, x)};
    }
    tt_c_at(w, node);
    tt_c_fail(w, "a variable can be assigned to, and what a pointer points to: *p",
              "this cannot be assigned to");
}

static Operand read_target(CWalker *w, const Target *target, const Node *node)
{
    if (target->name)
        return walk_name(w, node);
    tt_c_at(w, node);
    return tt_c_load(w, target->pointer);
}

/* The value of an assignment is what the variable has after it. */
static Operand write_target(CWalker *w, const Target *target, Operand x)
{
    if (!target->name) {
        tt_c_store(w, target->pointer, x);
        return x;
    }
    Variable *variable = tt_c_find_variable(w, target->name);
    tt_c_assign(w, variable, x);
    return (Operand){variable->value, variable->dtype, false};
}

static Operand walk_assign(CWalker *w, const Node *node)
{
    Target target = walk_target(w, node->first);
    Operand x = {0};
    if (node->has_op)
        x = read_target(w, &target, node->first);
    if (target.name)
        w->wanted = &tt_c_find_variable(w, target.name)->shape;
    Shape wanted = w->wanted ? *w->wanted : (Shape){0};
    w->wanted = w->wanted ? &wanted : NULL; /* variables may move */
    Operand y = tt_c_walk(w, node->second);
    w->wanted = NULL;
    tt_c_at(w, node);
    return write_target(w, &target, node->has_op ? tt_c_binary(w, node->op, x, y) : y);
}

static Operand walk_step(CWalker *w, const Node *node)
{
    Target target = walk_target(w, node->first);
    Operand before = read_target(w, &target, node->first);
    tt_c_at(w, node);
    Operand after = write_target(w, &target, tt_c_binary(w, node->op, before, tt_c_int(w, &tt_int32, 1)));
    return node->is_postfix ? before : after;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------ */

static Operand walk_float(CWalker *w, const Node *node)
{
    const Dtype *dtype = node->dtype ? node->dtype : &tt_fp64;
    Value *value = tt_build_float(&w->builder, tt_dtype_type(w->module, dtype), node->real);
    return (Operand){value, dtype, !node->dtype};
}

/* start ... end: the integers from start to before end. */
static Operand walk_range(CWalker *w, const Node *node)
{
    Operand ends[] = {tt_c_walk(w, node->first), tt_c_walk(w, node->second)};
    int64_t known[2];
    tt_c_at(w, node);
    for (int i = 0; i < 2; i++)
        if (!tt_c_known_int(ends[i], &known[i]))
            tt_c_fail(w, "add what is not known to a range that is: start + (0 ... 16)",
                      "the %s of a range must be known at compile time, and is %s", i ? "end" : "start",
                      tt_c_describe(w, ends[i]));
    if (known[0] < INT32_MIN || known[1] > INT32_MAX)
        tt_c_fail(w, NULL, "a range is of type int, and %lld ... %lld does not fit", (long long)known[0],
                  (long long)known[1]);
    if (known[1] <= known[0])
        tt_c_fail(w, "the end comes after the last element: 0 ... 8 has 8 elements",
                  "the range %lld ... %lld is empty", (long long)known[0], (long long)known[1]);
    if (known[1] - known[0] > TT_MAX_ELEMENTS)
        tt_c_fail(w, "take smaller tiles, and more programs or a loop",
                  "a tile may have %d elements, and here are %lld", TT_MAX_ELEMENTS,
                  (long long)(known[1] - known[0]));
    return (Operand){tt_build_range(&w->builder, known[0], known[1]), &tt_int32, false};
}

static Operand walk_cast(CWalker *w, const Node *node)
{
    const Declaration *d = node->declaration;
    Operand x = tt_c_walk(w, node->first);
    tt_c_at(w, node);
    x = tt_c_cast(w, x, d->dtype);
    if (!d->extents.count)
        return x;
    Shape shape = tt_c_extents(w, &d->extents);
    tt_c_at(w, node);
    return tt_c_broadcast(w, "the cast", x, &shape);
}

static Operand walk_one(CWalker *w, const Node *node)
{
    switch (node->kind) {
    case NODE_INT:
        tt_c_at(w, node);
        return tt_c_int(w, node->dtype, (int64_t)node->integer);
    case NODE_FLOAT:
        tt_c_at(w, node);
        return walk_float(w, node);
    case NODE_STRING:
        tt_c_at(w, node);
        tt_c_fail(w, "print and assert take one", "a string has no value here");
    case NODE_NAME:
        return walk_name(w, node);
    case NODE_UNARY:
        return walk_unary(w, node);
    case NODE_BINARY:
        return walk_binary(w, node);
    case NODE_CONDITIONAL:
        return tt_c_walk_conditional(w, node);
    case NODE_ASSIGN:
        return walk_assign(w, node);
    case NODE_STEP:
        return walk_step(w, node);
    case NODE_LOAD: {
        Operand pointer = tt_c_walk(w, node->first);
        tt_c_at(w, node);
        return tt_c_load(w, pointer);
    }
    case NODE_INDEX:
        return walk_index(w, node);
    case NODE_CALL:
        return tt_c_walk_call(w, node);
    case NODE_CAST:
        return walk_cast(w, node);
    case NODE_RANGE:
        return walk_range(w, node);
    case NODE_COMMA:
        tt_c_walk(w, node->first);
        return tt_c_walk(w, node->second);
    case NODE_WHOLE:
    case NODE_NEWAXIS:
        tt_c_at(w, node);
        tt_c_fail(w, "a tile takes them alone: x[:, newaxis]",
                  "`:` and newaxis stand beside each other only");
    default:
        tt_bug("an expression of kind %d", node->kind);
    }
}

/* `wanted` is for the expression that is the value itself, and for nothing inside of it but a call. */
Operand tt_c_walk(CWalker *w, const Node *node)
{
    if (tt_stack_is_short(&w->stack, MOST_STACK))
        tt_c_fail(w, "split it into simpler statements or functions",
                  "the program is nested too deeply to be compiled");
    if (++w->steps > MOST_STEPS)
        tt_c_fail(w, "take loops instead of calls of calls",
                  "the program is too long once its functions are inlined");
    if (node->kind != NODE_CALL)
        w->wanted = NULL;
    return walk_one(w, node);
}
