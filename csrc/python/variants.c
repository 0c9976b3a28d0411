/* Which compiled kernel a launch runs: the one for its specialisation, and of two widths of offsets the one that its
 * numbers need (analysis/offsets.h). */
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
    PyObject *is_warmup = numbers ? Py_False : Py_True;
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

bool tt_variant_fits(Compiled *compiled, LaunchNumbers numbers)
{
    return !compiled->checks || compiled->is_wide ||
           tt_launch_fits(compiled->checks, compiled->proved, numbers);
}

/* Of one in the table, or of its other width. */
static bool is_right(const Compiled *compiled, LaunchNumbers numbers)
{
    return !compiled->checks ||
           tt_launch_fits(compiled->checks, compiled->proved, numbers) != compiled->is_wide;
}

/* The other one lives as long as the one in the table. A new reference. */
static Compiled *other_width(Compiled *compiled, Kernel *kernel, const Specialization *s,
                             const LaunchNumbers *numbers)
{
    if (!compiled->other) {
        Compiled *other = compile(kernel, s, numbers);
        if (!other)
            return NULL;
        Compiled *before = compiled->other; /* another thread's */
        compiled->other = other;
        Py_XDECREF((PyObject *)before);
    }
    return (Compiled *)Py_NewRef((PyObject *)compiled->other);
}

Compiled *tt_find_ready(Kernel *kernel, const Specialization *s, LaunchNumbers numbers)
{
    Compiled *compiled = tt_table_find(&kernel->table, &s->key);
    if (compiled && !is_right(compiled, numbers))
        compiled = compiled->other;
    return (Compiled *)Py_XNewRef((PyObject *)compiled);
}

Compiled *tt_find_variant(Kernel *kernel, const Specialization *s, const LaunchNumbers *numbers)
{
    Compiled *compiled = tt_table_find(&kernel->table, &s->key);
    if (!compiled)
        return PyErr_Occurred() ? NULL : add_variant(kernel, s, numbers);
    Py_INCREF((PyObject *)compiled);
    if (!numbers || is_right(compiled, *numbers))
        return compiled;
    Compiled *other = other_width(compiled, kernel, s, numbers);
    Py_DECREF((PyObject *)compiled);
    return other;
}
