/* Which compiled kernel a launch runs: the one for its specialisation, and of those the one that rests on what its numbers
 * prove (analysis/offsets.h). */
#include "python/extension.h"

static bool call_hook_before(const Kernel *kernel, PyObject *signature, PyObject *options, Target target,
                             PyObject *is_warmup)
{
    char name[16];
    return !kernel->state->kernel_hooks[BEFORE_COMPILE] ||
           tt_call_kernel_hook(kernel->state, BEFORE_COMPILE,
                               Py_BuildValue("(OOOsO)", (PyObject *)kernel, signature, options,
                                             tt_target_name(target, name), is_warmup));
}

Compiled *tt_compile_variant(Kernel *kernel, const Key *key, Target target, int device,
                             const LaunchNumbers *numbers, bool in_background)
{
    PyObject *signature, *options;
    if (!tt_describe_key(key, kernel, &signature, &options))
        return NULL;
    tt_breathe();
    PyObject *is_warmup = numbers && numbers->slots ? Py_False : Py_True;
    Compiled *compiled = call_hook_before(kernel, signature, options, target, is_warmup)
                             ? tt_compile(kernel, signature, options, target, false, numbers, in_background)
                             : NULL;
    Py_DECREF(signature);
    Py_DECREF(options);
    if (compiled)
        compiled->device = device;
    if (compiled &&
        !tt_call_kernel_hook(kernel->state, AFTER_COMPILE, PyTuple_Pack(2, (PyObject *)compiled, is_warmup)))
        Py_CLEAR(compiled);
    return compiled;
}

static Compiled *compile(Kernel *kernel, const Specialization *s, const LaunchNumbers *numbers)
{
    return tt_compile_variant(kernel, &s->key, s->target, s->place.device, numbers, false);
}

/* Compiles and remembers the variant; a new reference. Of two threads that do so at once, the second one's stays. */
static Compiled *add_variant(Kernel *kernel, const Specialization *s, const LaunchNumbers *numbers)
{
    Compiled *compiled = compile(kernel, s, numbers);
    if (compiled && !tt_table_add(&kernel->table, &s->key, compiled))
        Py_CLEAR(compiled);
    return compiled;
}

unsigned tt_facts_of_variant(const Compiled *compiled, LaunchNumbers numbers)
{
    return compiled->checks ? tt_facts_of_launch(compiled->checks, compiled->known, numbers) : ALL_FACTS;
}

/* The one that rests on these facts, as far as it is one of `asked`. */
static Compiled *resting_on(Compiled *compiled, unsigned facts, unsigned asked)
{
    while (compiled && (compiled->rests_on ^ facts) & asked)
        compiled = compiled->other;
    return compiled;
}

/* The one for the launch, of those for the same key, which have the same checks; NULL if it is not there yet. Who vouches
 * for numbers takes any that is for the grid. */
static Compiled *choose(Compiled *compiled, LaunchNumbers numbers)
{
    if (numbers.slots)
        return resting_on(compiled, tt_facts_of_variant(compiled, numbers), ALL_FACTS);
    return resting_on(compiled, tt_facts_with(compiled->checks, tt_facts_of_grid(numbers)), FACTS_OF_GRID);
}

/* It lives as long as the one in the table, to which it is added unless another thread was faster. A new reference. */
static Compiled *add_other(Compiled *compiled, Compiled *other, const LaunchNumbers *numbers)
{
    Compiled *right = choose(compiled, *numbers);
    if (right)
        return (Compiled *)Py_NewRef((PyObject *)right);
    other->other = compiled->other;
    compiled->other = (Compiled *)Py_NewRef((PyObject *)other);
    tt_leave_to_kernel(other);
    return (Compiled *)Py_NewRef((PyObject *)other);
}

bool tt_add_variant(Kernel *kernel, const Key *key, Compiled *compiled, const LaunchNumbers *numbers)
{
    Compiled *first = tt_table_find(&kernel->table, key);
    if (!first)
        return !PyErr_Occurred() && tt_table_add(&kernel->table, key, compiled);
    Py_DECREF((PyObject *)add_other(first, compiled, numbers));
    return true;
}

Compiled *tt_find_ready(Kernel *kernel, const Key *key, LaunchNumbers numbers)
{
    Compiled *compiled = tt_table_find(&kernel->table, key);
    return (Compiled *)Py_XNewRef((PyObject *)(compiled ? choose(compiled, numbers) : NULL));
}

Compiled *tt_find_for_other_grid(Kernel *kernel, const Key *key, LaunchNumbers numbers)
{
    static const unsigned slowest_last[] = {0, FACT_TWO_EACH, FACTS_OF_GRID};
    Compiled *compiled = tt_table_find(&kernel->table, key), *other = NULL;
    unsigned facts = compiled ? tt_facts_of_variant(compiled, numbers) & ~(unsigned)FACTS_OF_GRID : 0;
    for (size_t i = 0; i < TT_COUNT(slowest_last) && !other; i++)
        other = resting_on(compiled, facts | slowest_last[i], ALL_FACTS);
    return (Compiled *)Py_XNewRef((PyObject *)other);
}

Compiled *tt_find_variant(Kernel *kernel, const Specialization *s, const LaunchNumbers *numbers)
{
    Compiled *compiled = tt_table_find(&kernel->table, &s->key);
    if (!compiled)
        return PyErr_Occurred() ? NULL : add_variant(kernel, s, numbers);
    Compiled *right = numbers ? choose(compiled, *numbers) : compiled;
    if (right)
        return (Compiled *)Py_NewRef((PyObject *)right);
    Py_INCREF((PyObject *)compiled); /* the table may forget it meanwhile */
    Compiled *other = compile(kernel, s, numbers);
    right = other ? add_other(compiled, other, numbers) : NULL;
    Py_XDECREF((PyObject *)other);
    Py_DECREF((PyObject *)compiled);
    return right;
}
