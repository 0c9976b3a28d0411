/* The language's element types: the IR's, with the signedness of integers and the const of pointers. */
#include "frontend/walker.h"

const Dtype tt_int1 = {.name = "int1", .kind = TT_I1};
const Dtype tt_int8 = {.name = "int8", .kind = TT_I8};
const Dtype tt_int16 = {.name = "int16", .kind = TT_I16};
const Dtype tt_int32 = {.name = "int32", .kind = TT_I32};
const Dtype tt_int64 = {.name = "int64", .kind = TT_I64};
const Dtype tt_uint8 = {.name = "uint8", .kind = TT_I8, .is_unsigned = true};
const Dtype tt_uint16 = {.name = "uint16", .kind = TT_I16, .is_unsigned = true};
const Dtype tt_uint32 = {.name = "uint32", .kind = TT_I32, .is_unsigned = true};
const Dtype tt_uint64 = {.name = "uint64", .kind = TT_I64, .is_unsigned = true};
const Dtype tt_fp8e4nv = {.name = "fp8e4nv", .kind = TT_F8E4M3};
const Dtype tt_fp8e5 = {.name = "fp8e5", .kind = TT_F8E5M2};
const Dtype tt_fp8e4b15 = {.name = "fp8e4b15", .kind = TT_F8E4M3B15};
const Dtype tt_fp16 = {.name = "fp16", .kind = TT_F16};
const Dtype tt_bf16 = {.name = "bf16", .kind = TT_BF16};
const Dtype tt_fp32 = {.name = "fp32", .kind = TT_F32};
const Dtype tt_fp64 = {.name = "fp64", .kind = TT_F64};
const Dtype tt_void = {.name = "void", .kind = TT_VOID};

static const Dtype *const dtypes[] = {
    &tt_int1,    &tt_int8,  &tt_int16,    &tt_int32, &tt_int64, &tt_uint8, &tt_uint16, &tt_uint32, &tt_uint64,
    &tt_fp8e4nv, &tt_fp8e5, &tt_fp8e4b15, &tt_fp16,  &tt_bf16,  &tt_fp32,  &tt_fp64,   &tt_void,
};

const Dtype *tt_dtype_named(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(dtypes); i++)
        if (!strcmp(name, dtypes[i]->name))
            return dtypes[i];
    return NULL;
}

const Dtype *tt_pointer_dtype(Walker *w, const Dtype *pointee, int space, bool is_const)
{
    const struct {
        const Dtype *pointee;
        int64_t space, is_const;
    } key = {pointee, space, is_const};
    void **slot = tt_map_slot(&w->state->pointers, &key, sizeof key);
    if (!*slot) {
        Dtype *dtype = TT_NEW(w->arena, Dtype);
        *dtype = (Dtype){.kind = TT_PTR, .is_const = is_const, .space = space, .pointee = pointee};
        dtype->name = tt_arena_format(w->arena, "pointer<%s%s>", is_const ? "const " : "", pointee->name);
        *slot = dtype;
    }
    return *slot;
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

const Type *tt_dtype_ir(Walker *w, const Dtype *dtype)
{
    if (dtype->kind == TT_PTR)
        return tt_ptr_type(w->module, tt_dtype_ir(w, dtype->pointee), dtype->space);
    return tt_scalar_type(w->module, dtype->kind);
}

const Type *tt_dtype_shaped(Walker *w, const Dtype *dtype, const int64_t *shape, int rank)
{
    return tt_shaped_type(w->module, tt_dtype_ir(w, dtype), shape, rank);
}
