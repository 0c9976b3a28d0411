/* Element types as Python objects, and back. */
#include "frontend/walker.h"

const Dtype *tt_pointer_dtype(Walker *w, const Dtype *pointee, int space, bool is_const)
{
    return tt_dtype_pointer_to(&w->state->pointers, pointee, space, is_const);
}

static const Dtype *read_pointer_type(Walker *w, PyObject *object)
{
    const Dtype *pointee = tt_dtype_from_object(w, tt_attribute(w, object, FIELD_element_ty));
    if (!pointee)
        return NULL;
    int space = (int)tt_int_attribute(w, object, FIELD_address_space);
    PyObject *constant = PyObject_GetAttrString(object, "const");
    int is_const = constant ? PyObject_IsTrue(constant) : -1;
    Py_XDECREF(constant);
    if (is_const < 0)
        tt_python_error(w);
    return tt_pointer_dtype(w, pointee, space, is_const);
}

const Dtype *tt_dtype_from_object(Walker *w, PyObject *object)
{
    ObjectKind kind = tt_object_kind(w, object);
    if (kind != OBJECT_DTYPE && kind != OBJECT_POINTER_TYPE)
        return NULL;
    const Dtype *known = tt_map_find_ptr(&w->state->dtypes, object);
    if (known)
        return known;
    if (kind == OBJECT_POINTER_TYPE) {
        known = read_pointer_type(w, object);
    } else {
        PyObject *name = tt_attribute(w, object, FIELD_name);
        known = PyUnicode_Check(name) ? tt_dtype_named(tt_utf8(w, name)) : NULL;
    }
    if (known)
        *tt_map_slot_ptr(&w->state->dtypes, tt_keep(w, Py_NewRef(object))) = (void *)known;
    return known;
}

PyObject *tt_dtype_to_object(Walker *w, const Dtype *dtype)
{
    void **slot = tt_map_slot_ptr(&w->state->dtype_objects, dtype);
    if (*slot)
        return *slot;
    PyObject *object;
    if (dtype->kind == TT_PTR) {
        PyObject *element = tt_dtype_to_object(w, dtype->pointee);
        PyObject *constant = dtype->is_const ? Py_True : Py_False;
        object = PyObject_CallFunction(tt_language_object(w, "pointer_type"), "OiO", element, dtype->space,
                                       constant);
        slot = tt_map_slot_ptr(&w->state->dtype_objects, dtype); /* the pointee may have moved the table */
    } else {
        object = PyObject_CallFunction(tt_language_object(w, "dtype"), "s", dtype->name);
    }
    *slot = tt_keep(w, object);
    *tt_map_slot_ptr(&w->state->dtypes, object) = (void *)dtype;
    return object;
}

const char *tt_dtype_spelling(Walker *w, const Dtype *dtype)
{
    const char *name = dtype->name;
    if (dtype->kind == TT_PTR)
        return tt_arena_format(w->arena, "tl.pointer_type(%s)", tt_dtype_spelling(w, dtype->pointee));
    if (!strncmp(name, "fp", 2))
        return tt_arena_format(w->arena, "tl.float%s", name + 2);
    return tt_arena_format(w->arena, "tl.%s", dtype == &tt_bf16 ? "bfloat16" : name);
}

const Type *tt_dtype_ir(Walker *w, const Dtype *dtype) { return tt_dtype_type(w->module, dtype); }

const Type *tt_dtype_shaped(Walker *w, const Dtype *dtype, const int64_t *shape, int rank)
{
    return tt_shaped_type(w->module, tt_dtype_ir(w, dtype), shape, rank);
}
