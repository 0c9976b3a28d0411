/* Operators, and the questions asked of compile-time terms. What both operands are known for, Python computes. */
#include "frontend/walker.h"

const char *const tt_operator_texts[] = {
    [OPERATOR_ADD] = "+",     [OPERATOR_SUB] = "-",           [OPERATOR_MUL] = "*",
    [OPERATOR_DIV] = "/",     [OPERATOR_FLOORDIV] = "//",     [OPERATOR_MOD] = "%",
    [OPERATOR_POW] = "**",    [OPERATOR_MATMUL] = "@",        [OPERATOR_LSHIFT] = "<<",
    [OPERATOR_RSHIFT] = ">>", [OPERATOR_AND] = "&",           [OPERATOR_OR] = "|",
    [OPERATOR_XOR] = "^",     [OPERATOR_EQ] = "==",           [OPERATOR_NE] = "!=",
    [OPERATOR_LT] = "<",      [OPERATOR_LE] = "<=",           [OPERATOR_GT] = ">",
    [OPERATOR_GE] = ">=",     [OPERATOR_LOGICAL_AND] = "and", [OPERATOR_LOGICAL_OR] = "or",
    [OPERATOR_NEG] = "-",     [OPERATOR_POS] = "+",           [OPERATOR_INVERT] = "~",
    [OPERATOR_NOT] = "not",
};

static bool is_comparison(Operator op) { return op >= OPERATOR_EQ && op <= OPERATOR_GE; }

static PyObject *evaluate(Operator op, PyObject *a, PyObject *b)
{
    typedef PyObject *Binary(PyObject *, PyObject *);
    static Binary *const functions[] = {
        [OPERATOR_ADD] = PyNumber_Add,
        [OPERATOR_SUB] = PyNumber_Subtract,
        [OPERATOR_MUL] = PyNumber_Multiply,
        [OPERATOR_DIV] = PyNumber_TrueDivide,
        [OPERATOR_FLOORDIV] = PyNumber_FloorDivide,
        [OPERATOR_MOD] = PyNumber_Remainder,
        [OPERATOR_MATMUL] = PyNumber_MatrixMultiply,
        [OPERATOR_LSHIFT] = PyNumber_Lshift,
        [OPERATOR_RSHIFT] = PyNumber_Rshift,
        [OPERATOR_AND] = PyNumber_And,
        [OPERATOR_OR] = PyNumber_Or,
        [OPERATOR_XOR] = PyNumber_Xor,
    };
    static const int comparisons[] = {
        [OPERATOR_EQ] = Py_EQ, [OPERATOR_NE] = Py_NE, [OPERATOR_LT] = Py_LT,
        [OPERATOR_LE] = Py_LE, [OPERATOR_GT] = Py_GT, [OPERATOR_GE] = Py_GE,
    };
    if (op == OPERATOR_POW)
        return PyNumber_Power(a, b, Py_None);
    return is_comparison(op) ? PyObject_RichCompare(a, b, comparisons[op]) : functions[op](a, b);
}

/* What would only eat memory is a mistake: ints of more bits than this, and longer strings and lists. */
enum { MOST_BITS = 1 << 16, MOST_ITEMS = 1 << 20 };

static _Noreturn void too_large(Walker *w, Operator op)
{
    tt_fail(w, "the result of this `%s` is too large", tt_operator_texts[op]);
}

static long long bit_length(Walker *w, PyObject *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    unsigned long long magnitude = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    if (!overflow)
        return magnitude ? 64 - __builtin_clzll(magnitude) : 0;
    return PyLong_AsLongLong(tt_keep(w, PyObject_CallMethod(number, "bit_length", NULL)));
}

/* Shifts and powers are refused before they are computed. */
static void check_operands(Walker *w, Operator op, PyObject *a, PyObject *b)
{
    if ((op != OPERATOR_LSHIFT && op != OPERATOR_POW) || !PyLong_Check(a) || !PyLong_Check(b))
        return;
    int overflow;
    long long amount = PyLong_AsLongLongAndOverflow(b, &overflow), bits = bit_length(w, a);
    bool stays_small = !bits || (op == OPERATOR_POW && bits == 1);
    if (stays_small || overflow < 0 || amount <= 0)
        return;
    if (overflow || amount > MOST_BITS || (op == OPERATOR_POW && bits * amount > 2 * MOST_BITS))
        too_large(w, op);
}

/* So is the repetition of a string or list. */
static void check_repetition(Walker *w, Operator op, PyObject *sequence, PyObject *times)
{
    if (op != OPERATOR_MUL || !PyLong_Check(times) || !PySequence_Check(sequence))
        return;
    Py_ssize_t length = PySequence_Size(sequence);
    if (length < 0)
        tt_python_error(w);
    int overflow;
    long long count = PyLong_AsLongLongAndOverflow(times, &overflow);
    if (length && (overflow > 0 || count > MOST_ITEMS / length))
        too_large(w, op);
}

/* Of the others: their results are at most about as large as both operands, and are computed first. */
bool tt_is_too_large(Walker *w, PyObject *result)
{
    if (PyLong_Check(result))
        return bit_length(w, result) > MOST_BITS;
    bool is_sequence = PyUnicode_Check(result) || PyBytes_Check(result) || PyList_Check(result);
    return is_sequence && PySequence_Size(result) > MOST_ITEMS;
}

static Term python_binary(Walker *w, Operator op, PyObject *a, PyObject *b)
{
    check_operands(w, op, a, b);
    check_repetition(w, op, a, b);
    check_repetition(w, op, b, a);
    PyObject *result = evaluate(op, a, b);
    if (!result && (a == Py_None || b == Py_None) && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        tt_none_operand(w, tt_arena_format(w->arena, "`%s`", tt_operator_texts[op]));
    }
    tt_keep(w, result);
    if (tt_is_too_large(w, result))
        too_large(w, op);
    return tt_python_term(w, result);
}

static _Noreturn void bad_operands(Walker *w, Operator op, Term a, Term b)
{
    tt_fail(w, "`%s` does not take %s and %s", tt_operator_texts[op], tt_describe(w, a), tt_describe(w, b));
}

static Term concatenate(Walker *w, Term a, Term b)
{
    if (a.count > MOST_TUPLE_ITEMS - b.count)
        tt_fail(w, "a tuple of %d items and more is too large", MOST_TUPLE_ITEMS);
    Term *items = TT_NEW_ARRAY(w->arena, Term, a.count + b.count);
    for (int i = 0; i < a.count + b.count; i++)
        items[i] = i < a.count ? a.items[i] : b.items[i - a.count];
    return tt_tuple_term(w, items, a.count + b.count);
}

static Term repeat(Walker *w, Term a, int64_t times)
{
    times = TT_MAX(times, 0);
    if (a.count && times > MOST_TUPLE_ITEMS / a.count)
        tt_fail(w, "a tuple repeated %lld times is too large", (long long)times);
    int count = a.count * (int)times;
    Term *items = TT_NEW_ARRAY(w->arena, Term, count);
    for (int i = 0; i < count; i++)
        items[i] = a.items[i % a.count];
    return tt_tuple_term(w, items, count);
}

static Term tuple_binary(Walker *w, Operator op, Term a, Term b)
{
    int64_t times;
    Term result;
    if (tt_own_binary(w, op, a, b, &result))
        return result;
    if (op == OPERATOR_ADD && a.kind == b.kind)
        return concatenate(w, a, b);
    if (op == OPERATOR_MUL && a.kind == TERM_TUPLE && tt_term_int(w, b, &times))
        return repeat(w, a, times);
    if (op == OPERATOR_MUL && b.kind == TERM_TUPLE && tt_term_int(w, a, &times))
        return repeat(w, b, times);
    PyObject *left = tt_term_python(w, a), *right = left ? tt_term_python(w, b) : NULL;
    if (left && right)
        return python_binary(w, op, left, right);
    bad_operands(w, op, a, b);
}

/* "%d" % n: of an object that is no number Python computes what it can. */
static bool is_object(Term t) { return t.kind == TERM_PYTHON && !tt_is_number(t) && !tt_is_none(t); }

Term tt_binary(Walker *w, Operator op, Term a, Term b)
{
    if (a.kind == TERM_PYTHON && b.kind == TERM_PYTHON)
        return python_binary(w, op, a.object, b.object);
    if ((op == OPERATOR_EQ || op == OPERATOR_NE) && (tt_is_none(a) || tt_is_none(b)))
        return tt_bool_term(w, op == OPERATOR_NE); /* a value is never None */
    if (a.kind == TERM_TUPLE || b.kind == TERM_TUPLE)
        return tuple_binary(w, op, a, b);
    PyObject *left = is_object(a) || is_object(b) ? tt_term_python(w, a) : NULL;
    PyObject *right = left ? tt_term_python(w, b) : NULL;
    if (right)
        return python_binary(w, op, left, right);
    if (a.kind >= TERM_METHOD || b.kind >= TERM_METHOD)
        bad_operands(w, op, a, b);
    return tt_semantic_binary(w, op, a, b);
}

Term tt_unary(Walker *w, Operator op, Term a)
{
    int truth = op == OPERATOR_NOT && a.kind != TERM_VALUE ? tt_known_truth(w, a) : -1;
    if (truth >= 0)
        return tt_bool_term(w, !truth);
    if (a.kind == TERM_VALUE)
        return tt_semantic_unary(w, op, a);
    Term result;
    if (tt_own_unary(w, op, a, &result))
        return result;
    if (a.kind != TERM_PYTHON)
        tt_fail(w, "`%s` does not take %s", tt_operator_texts[op], tt_describe(w, a));
    PyObject *(*function)(PyObject *) = op == OPERATOR_NEG   ? PyNumber_Negative
                                        : op == OPERATOR_POS ? PyNumber_Positive
                                                             : PyNumber_Invert;
    return tt_new_python_term(w, function(a.object));
}

int tt_known_truth(Walker *w, Term t)
{
    int64_t integer;
    double number;
    switch (t.kind) {
    case TERM_PYTHON: {
        int truth = PyObject_IsTrue(t.object);
        if (truth < 0)
            tt_python_error(w);
        return truth;
    }
    case TERM_TUPLE:
        return t.count > 0;
    case TERM_VALUE:
        if (tt_is_tile(t.value->type))
            return -1;
        if (tt_constant_int(t.value, &integer))
            return integer != 0;
        return tt_constant_float(t.value, &number) ? number != 0 : -1;
    default:
        return 1;
    }
}

Value *tt_condition(Walker *w, Term t)
{
    int truth = tt_known_truth(w, t);
    if (truth >= 0)
        return tt_build_int(&w->builder, tt_scalar_type(w->module, TT_I1), truth);
    return tt_semantic_truth(w, t);
}

Term tt_decay(Walker *w, Term t)
{
    if (t.kind == TERM_TUPLE) {
        Term copy = tt_tuple_term(w, t.items, t.count);
        copy.object = t.object;
        for (int i = 0; i < t.count; i++)
            if (!tt_is_constexpr_field(w, t, i))
                copy.items[i] = tt_decay(w, t.items[i]);
        return copy;
    }
    return tt_is_number(t) ? tt_number_value(w, t, tt_number_dtype(w, t)) : t;
}

static bool same_object(Walker *w, PyObject *a, PyObject *b)
{
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (PyFloat_Check(a)) { /* 0.0 and -0.0 are two constants, nan is one */
        double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
        return !memcmp(&x, &y, sizeof x);
    }
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0)
        tt_look_away(w);
    return same == 1;
}

bool tt_same_term(Walker *w, Term a, Term b)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case TERM_UNDEFINED:
        return true;
    case TERM_VALUE:
        return a.value == b.value && a.dtype == b.dtype;
    case TERM_PYTHON:
        return same_object(w, a.object, b.object);
    case TERM_BLOCK_POINTER:
        if (memcmp(a.block, b.block, sizeof *a.block))
            return false;
        break;
    default:
        if (a.object != b.object)
            return false;
    }
    if (a.count != b.count)
        return false;
    for (int i = 0; i < a.count; i++)
        if (!tt_same_term(w, a.items[i], b.items[i]))
            return false;
    return true;
}

bool tt_has_values(Term t)
{
    if (t.kind == TERM_UNDEFINED || t.kind == TERM_PYTHON)
        return false;
    if (t.kind == TERM_VALUE)
        return true;
    for (int i = 0; i < t.count; i++)
        if (tt_has_values(t.items[i]))
            return true;
    return false;
}
