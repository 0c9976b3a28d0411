/* Builtins of memory: load, store, atomics. Block pointers become pointers and masks first
 * (builtins_block_pointer.c). */
#include "frontend/builtins.h"

/* ---- hints --------------------------------------------------------------------------------------------- */

/* A string argument that is one of `allowed` (the first is the empty one), or NULL for that. */
static const char *choice(Walker *w, Term *args, int index, const char *const *allowed, int count)
{
    const char *given = tt_arg_string(w, args, index);
    if (!given || !*given)
        return NULL;
    Text list = {.arena = w->arena};
    for (int i = 0; i < count; i++) {
        if (!strcmp(given, allowed[i]))
            return given;
        tt_text_add(&list, "%s\"%s\"", i ? ", " : "", allowed[i]);
    }
    tt_fail(w, "`%s` of %s is one of %s, not \"%s\"", tt_parameter_name(w, index), tt_call_name(w), list.data,
            given);
}

/* Hints go to every target, which may ignore them; misspelt ones go nowhere. */
static Attr *hint_attributes(Walker *w, Term *args, int cache, int eviction, bool is_load)
{
    static const char *const on_load[] = {"", ".ca", ".cg", ".cs", ".cv"};
    static const char *const on_store[] = {"", ".wb", ".cg", ".cs", ".wt"};
    static const char *const policies[] = {"", "evict_first", "evict_last", "evict_normal"};
    const char *modifier = choice(w, args, cache, is_load ? on_load : on_store, TT_COUNT(on_load));
    const char *policy = choice(w, args, eviction, policies, TT_COUNT(policies));
    Attr *attrs = NULL;
    if (modifier)
        attrs = tt_attr_string(w->module, ATTR_cache, modifier, attrs);
    if (policy)
        attrs = tt_attr_string(w->module, ATTR_evict, policy, attrs);
    return attrs;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static Term pointer_argument(Walker *w, Term *args, int index)
{
    Term t = args[index];
    if (tt_is_value(t) && tt_dtype_is_pointer(t.dtype) && t.dtype->pointee != &tt_void)
        return t;
    const char *remedy = "the first argument is an address: a pointer parameter, or one plus offsets";
    if (t.kind == TERM_BLOCK_POINTER)
        remedy = "tl.load and tl.store take block pointers; others need a tile of pointers";
    else if (tt_is_value(t) || tt_is_number(t))
        remedy = "only arrays become pointers: pass an array to the launch, or add the offsets to a pointer";
    tt_fail_with_remedy(w, remedy, "`%s` of %s must be a pointer, not %s", tt_parameter_name(w, index),
                        tt_call_name(w), tt_describe(w, t));
}

/* An int mask is refused: whether 2 means true or its low bit counts would differ between targets. */
static Term mask_argument(Walker *w, Term *args, int index)
{
    Term t = args[index];
    if (tt_is_number(t))
        return tt_to_bool(w, t);
    if (!tt_is_value(t))
        tt_arg_error(w, args, index, "a tile or scalar of bools");
    if (!tt_dtype_is_bool(t.dtype))
        tt_fail_with_remedy(w, "compare it with something, as in `mask != 0`",
                            "`%s` of %s must be of type int1, not %s", tt_parameter_name(w, index),
                            tt_call_name(w), tt_describe(w, t));
    return t;
}

/* A scalar pointer goes with scalars only. */
static void check_scalar(Walker *w, Term pointer, Term t, const char *parameter)
{
    if (!tt_is_tile_term(pointer) && tt_is_tile_term(t))
        tt_fail_with_remedy(w, "add offsets to the pointer, as in pointer + tl.arange(0, N)",
                            "%s got a scalar pointer, %s, and a tile as `%s`, %s", tt_call_name(w),
                            tt_describe(w, pointer), parameter, tt_describe(w, t));
}

/* `t` in the pointer's shape. */
static Term follow_pointer(Walker *w, Term pointer, Term t, const char *parameter)
{
    check_scalar(w, pointer, t, parameter);
    Shape shape = tt_shape_of(pointer), from = tt_shape_of(t), met;
    if (!tt_broadcast_shapes(&shape, &from, &met) || met.rank != shape.rank ||
        memcmp(met.extents, shape.extents, sizeof(int64_t) * (size_t)met.rank))
        tt_fail_with_remedy(w,
                            "make it the shape of the pointer, with x[:, None] where a dimension is missing",
                            "`%s` of %s, %s, does not broadcast to the shape of the pointer, %s", parameter,
                            tt_call_name(w), tt_describe(w, t), tt_describe(w, pointer));
    return tt_broadcast_to(w, tt_call_name(w), t, &shape);
}

static void check_no_block_arguments(Walker *w, Term *args, int boundary_check, int padding)
{
    const Term *items;
    int count;
    bool checks = tt_term_items(w, args[boundary_check], &items, &count) ? count > 0
                                                                         : !tt_is_none(args[boundary_check]);
    const char *option = padding >= 0 ? tt_arg_string(w, args, padding) : NULL;
    if (checks || (option && *option))
        tt_fail_with_remedy(w, "use `mask`, and `other` for the elements it leaves out",
                            "%s takes boundary_check and padding_option for block pointers only",
                            tt_call_name(w));
}

/* ---- load and store ------------------------------------------------------------------------------------ */

/* load(pointer, mask, other, boundary_check, padding_option, cache_modifier, eviction_policy, volatile) */
Term tt_builtin_load(Walker *w, Term *args)
{
    enum { POINTER, MASK, OTHER, BOUNDARY, PADDING, CACHE, EVICTION, VOLATILE };
    if (args[POINTER].kind == TERM_BLOCK_POINTER)
        tt_expand_block_load(w, args);
    else
        check_no_block_arguments(w, args, BOUNDARY, PADDING);
    Attr *attrs = hint_attributes(w, args, CACHE, EVICTION, true);
    if (tt_arg_bool(w, args, VOLATILE))
        attrs = tt_attr_int(w->module, ATTR_volatile, 1, attrs);

    Term operands[3] = {pointer_argument(w, args, POINTER)};
    int given = 1;
    bool has_mask = !tt_is_none(args[MASK]), has_other = !tt_is_none(args[OTHER]);
    if (has_other && !has_mask)
        tt_fail_with_remedy(w, "give the mask that says which elements are not read",
                            "tl.load got `other` without `mask`");
    const Dtype *dtype = operands[0].dtype->pointee;
    if (has_mask)
        operands[given++] = mask_argument(w, args, MASK);
    if (has_other)
        operands[given++] = tt_cast(w, args[OTHER], dtype, ROUND_NEAREST_EVEN);
    for (int i = 1; i < given; i++)
        check_scalar(w, operands[0], operands[i], i == 1 ? "mask" : "other");
    tt_broadcast_together(w, "tl.load", operands, given);

    Value *mask = given > 1 ? operands[1].value : NULL, *other = given > 2 ? operands[2].value : NULL;
    return tt_typed_term(tt_typed_load(&w->builder, tt_typed_of(operands[0]), mask, other, attrs));
}

/* Arrays that cannot be written arrive as const pointers, as do parameters annotated so. */
static void check_writable(Walker *w, Term pointer)
{
    if (pointer.dtype->is_const)
        tt_fail_with_remedy(w, "take tl.const off the parameter, or pass an array that may be written",
                            "Cannot store to a constant pointer: %s got %s", tt_call_name(w),
                            tt_describe(w, pointer));
}

static Term stored_value(Walker *w, Term *args, int index, Term pointer, const Dtype *dtype)
{
    Term t = args[index];
    if (!tt_is_value(t) && !tt_is_number(t))
        tt_arg_error(w, args, index, "a tensor or a number");
    return follow_pointer(w, pointer, tt_cast_exactly(w, t, dtype), tt_parameter_name(w, index));
}

/* store(pointer, value, mask, boundary_check, cache_modifier, eviction_policy) */
Term tt_builtin_store(Walker *w, Term *args)
{
    enum { POINTER, VALUE, MASK, BOUNDARY, CACHE, EVICTION };
    if (args[POINTER].kind == TERM_BLOCK_POINTER)
        tt_expand_block_store(w, args);
    else
        check_no_block_arguments(w, args, BOUNDARY, -1);
    Attr *attrs = hint_attributes(w, args, CACHE, EVICTION, false);
    Term pointer = pointer_argument(w, args, POINTER);
    check_writable(w, pointer);
    Value *value = stored_value(w, args, VALUE, pointer, pointer.dtype->pointee).value, *mask = NULL;
    if (!tt_is_none(args[MASK]))
        mask = follow_pointer(w, pointer, mask_argument(w, args, MASK), "mask").value;
    tt_typed_store(&w->builder, tt_typed_of(pointer), value, mask, attrs);
    return tt_none(w);
}

/* ---- atomics ------------------------------------------------------------------------------------------- */

/* The first of `sems` is the default. */
static Attr *order_among(Walker *w, Term *args, int sem, const char *const *sems, int count)
{
    static const char *const scopes[] = {"gpu", "cta", "sys"};
    const char *order = choice(w, args, sem, sems, count);
    const char *range = choice(w, args, sem + 1, scopes, TT_COUNT(scopes));
    Attr *attrs = tt_attr_string(w->module, ATTR_scope, range ? range : "gpu", NULL);
    return tt_attr_string(w->module, ATTR_sem, order ? order : sems[0], attrs);
}

/* Of the parameters `sem` and, after it, `scope`. */
static Attr *order_attributes(Walker *w, Term *args, int sem)
{
    static const char *const sems[] = {"acq_rel", "acquire", "release", "relaxed"};
    return order_among(w, args, sem, sems, TT_COUNT(sems));
}

static Term atomic_pointer(Walker *w, Term *args, const AtomicInfo *info)
{
    Term pointer = pointer_argument(w, args, 0);
    check_writable(w, pointer);
    if (!tt_atomic_takes(info, pointer.dtype->pointee))
        tt_fail_with_remedy(
            w,
            info->takes & ATOMIC_SMALL_FLOATS ? "use 32-bit or 64-bit integers, or floats of 16 bits and more"
            : info->takes & ATOMIC_FLOATS     ? "use 32-bit or 64-bit integers or floats"
                                              : "use 32-bit or 64-bit integers",
            "%s does not work on elements of type %s", tt_call_name(w), pointer.dtype->pointee->name);
    return pointer;
}

/* atomic_add(pointer, val, mask, sem, scope) and the other rows above */
Term tt_builtin_atomic(Walker *w, Term *args)
{
    enum { POINTER, VAL, MASK, SEM };
    const AtomicInfo *info = tt_atomic_named(w->call->name);
    if (!info)
        tt_bug("no atomic operation is called %s", w->call->name);
    Term pointer = atomic_pointer(w, args, info);
    Value *value = stored_value(w, args, VAL, pointer, pointer.dtype->pointee).value, *mask = NULL;
    if (!tt_is_none(args[MASK]))
        mask = follow_pointer(w, pointer, mask_argument(w, args, MASK), "mask").value;
    Attr *attrs = order_attributes(w, args, SEM);
    return tt_typed_term(tt_typed_atomic(&w->builder, info, tt_typed_of(pointer), value, mask, attrs));
}

/* atomic_cas(pointer, cmp, val, sem, scope) */
Term tt_builtin_atomic_cas(Walker *w, Term *args)
{
    enum { POINTER, CMP, VAL, SEM };
    Term pointer = pointer_argument(w, args, POINTER);
    check_writable(w, pointer);
    const Dtype *dtype = pointer.dtype->pointee;
    if (tt_dtype_is_pointer(dtype) || tt_dtype_width(dtype) < 16)
        tt_fail_with_remedy(w, "use elements of 16, 32 or 64 bits",
                            "tl.atomic_cas does not work on elements of type %s", dtype->name);
    Value *values[] = {pointer.value, stored_value(w, args, CMP, pointer, dtype).value,
                       stored_value(w, args, VAL, pointer, dtype).value};
    Attr *attrs = order_attributes(w, args, SEM);
    return tt_value_term(tt_build(&w->builder, OP_atomic_cas, values, 3, values[1]->type, attrs), dtype);
}

/* ---- atomic loads and stores --------------------------------------------------------------------------- */

/* The integers that elements are moved as. */
static const Dtype *bits_of(const Dtype *dtype)
{
    switch (tt_dtype_is_pointer(dtype) ? 64 : tt_dtype_width(dtype)) {
    case 64:
        return &tt_int64;
    case 32:
        return &tt_int32;
    case 16:
        return &tt_int16;
    default:
        return &tt_int8; /* bools as well */
    }
}

static Term move(Walker *w, const char *kind, Term pointer, Term value, Value *mask, Attr *attrs)
{
    const Dtype *bits = bits_of(pointer.dtype->pointee);
    const Dtype *to = tt_pointer_dtype(w, bits, pointer.dtype->space, pointer.dtype->is_const);
    Value *operands[] = {tt_cast(w, pointer, to, ROUND_NEAREST_EVEN).value, value.value, mask};
    attrs = tt_attr_string(w->module, ATTR_kind, kind, attrs);
    Value *old = tt_build(&w->builder, OP_atomic_rmw, operands, mask ? 3 : 2, value.value->type, attrs);
    return tt_value_term(old, bits);
}

/* atomic_load(pointer, mask, sem, scope) */
Term tt_builtin_atomic_load(Walker *w, Term *args)
{
    enum { POINTER, MASK, SEM };
    static const char *const sems[] = {"acquire", "relaxed"};
    Term pointer = pointer_argument(w, args, POINTER);
    const Dtype *dtype = pointer.dtype->pointee, *bits = bits_of(dtype);
    Value *mask = NULL;
    if (!tt_is_none(args[MASK]))
        mask = follow_pointer(w, pointer, mask_argument(w, args, MASK), "mask").value;
    Term nothing = follow_pointer(w, pointer, tt_cast(w, tt_int_term(w, 0), bits, ROUND_NEAREST_EVEN), "0");
    Attr *attrs = order_among(w, args, SEM, sems, TT_COUNT(sems));
    Term found = move(w, "load", pointer, nothing, mask, attrs);
    return tt_dtype_is_bool(dtype) ? tt_to_bool(w, found) : tt_bitcast(w, found, dtype);
}

/* atomic_store(pointer, val, mask, sem, scope) */
Term tt_builtin_atomic_store(Walker *w, Term *args)
{
    enum { POINTER, VAL, MASK, SEM };
    static const char *const sems[] = {"release", "relaxed"};
    Term pointer = pointer_argument(w, args, POINTER);
    check_writable(w, pointer);
    const Dtype *dtype = pointer.dtype->pointee, *bits = bits_of(dtype);
    Term value = stored_value(w, args, VAL, pointer, dtype);
    value =
        tt_dtype_is_bool(dtype) ? tt_cast(w, value, bits, ROUND_NEAREST_EVEN) : tt_bitcast(w, value, bits);
    Value *mask = NULL;
    if (!tt_is_none(args[MASK]))
        mask = follow_pointer(w, pointer, mask_argument(w, args, MASK), "mask").value;
    move(w, "store", pointer, value, mask, order_among(w, args, SEM, sems, TT_COUNT(sems)));
    return tt_none(w);
}
