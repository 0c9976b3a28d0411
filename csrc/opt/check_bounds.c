/* Checks for debugging: an assertion before each access that it stays in the array it belongs to. Every function gets
 * two more parameters for each pointer among its parameters, behind the others and in their order: the address where
 * the array begins and the one where it ends. Pointers that are computed from several parameters, or loaded, are not
 * checked. */
#include "opt/opt.h"

typedef struct Range {
    Value *begin, *end;
} Range;

typedef struct Checks {
    const ParamPointers *pointers;
    Range *ranges; /* for each parameter there was; NULLs for those that are no pointers */
} Checks;

static Range *add_range_params(Function *function)
{
    Region *body = function->body;
    Arena *arena = function->module->arena;
    const Type *address = tt_scalar_type(function->module, TT_I64);
    int count = body->arg_count;
    Range *ranges = TT_NEW_ARRAY(arena, Range, count);
    for (int i = 0; i < count; i++)
        if (tt_is_ptr(body->args[i]->type))
            ranges[i] = (Range){tt_add_region_arg(body, address), tt_add_region_arg(body, address)};
    Attr **attrs = TT_NEW_ARRAY(arena, Attr *, body->arg_count);
    memcpy(attrs, function->param_attrs, sizeof *attrs * (size_t)count);
    function->param_attrs = attrs;
    return ranges;
}

static Value *shaped_like(Builder *b, Value *scalar, const Value *value)
{
    const Type *type = value->type;
    return tt_is_tile(type) ? tt_build_splat(b, scalar, type->shape, type->rank) : scalar;
}

/* A distance in bytes as elements, a power of two of them each; the one below where it lies between two. */
static Value *in_elements(Builder *b, Value *distance, int64_t bytes)
{
    return tt_build2(b, OP_shr_s, distance, tt_build_int(b, distance->type, tt_log2(bytes)));
}

/* The mask of an access, or NULL: a bool behind pointer and value. */
static Value *mask_of(const Op *op)
{
    int index = tt_has(op, WRITES) ? 2 : 1;
    bool masked = op->operand_count > index && op->opcode != OP_atomic_cas;
    return masked ? tt_operand(op, index) : NULL;
}

static const char *message(const Checks *checks, const Op *op, const Function *function)
{
    const char *access = tt_has(op, READS) && tt_has(op, WRITES) ? "atomic access"
                         : tt_has(op, READS)                     ? "load"
                                                                 : "store";
    int param = tt_pointer_param(checks->pointers, tt_operand(op, 0));
    const char *name = function->body->args[param]->name;
    Arena *arena = function->module->arena;
    const char *array =
        name ? tt_arena_format(arena, "'%s'", name) : tt_arena_format(arena, "in argument %d", param);
    return tt_arena_format(arena, "%s out of bounds of the array %s: index {0}, and it has {1} elements",
                           access, array);
}

static void check_access(const Checks *checks, Op *op)
{
    Builder b = tt_builder_before(op);
    Value *pointer = tt_operand(op, 0), *mask = mask_of(op);
    const Range *range = &checks->ranges[tt_pointer_param(checks->pointers, pointer)];
    Value *address = tt_build_cast(&b, OP_ptr_to_int, pointer, tt_scalar_type(b.module, TT_I64));
    int64_t bytes = tt_byte_width(tt_element(pointer->type)->element);
    Value *size = tt_build_int(&b, range->end->type, bytes);
    Value *last = shaped_like(&b, tt_build2(&b, OP_sub, range->end, size), pointer);
    Value *begin = shaped_like(&b, range->begin, pointer);
    Value *inside =
        tt_build2(&b, OP_and, tt_build2(&b, OP_ge_s, address, begin), tt_build2(&b, OP_le_s, address, last));
    Value *index = in_elements(&b, tt_build2(&b, OP_sub, address, begin), bytes);
    Value *extent = in_elements(&b, tt_build2(&b, OP_sub, range->end, range->begin), bytes);
    const char *text = message(checks, op, op->parent->function);
    Attr *attrs = tt_attr_string(b.module, ATTR_message, text, NULL);
    attrs = tt_attr_string(b.module, ATTR_kind, "bounds", attrs);
    Value *operands[4] = {inside, mask};
    int count = mask ? 2 : 1;
    operands[count++] = index;
    operands[count++] = shaped_like(&b, extent, pointer);
    tt_build_op(&b, OP_assert, operands, count, NULL, 0, attrs);
}

/* The callee's ranges are those of the arrays that its arguments point into, or all of memory. */
static void pass_ranges(const Checks *checks, Op *call)
{
    Builder b = tt_builder_before(call);
    const Type *address = tt_scalar_type(b.module, TT_I64);
    for (int i = 0, count = call->operand_count; i < count; i++) {
        Value *operand = tt_operand(call, i);
        if (!tt_is_ptr(operand->type))
            continue;
        int param = tt_pointer_param(checks->pointers, operand);
        tt_add_operand(call, param >= 0 ? checks->ranges[param].begin : tt_build_int(&b, address, 0));
        tt_add_operand(call, param >= 0 ? checks->ranges[param].end : tt_build_int(&b, address, INT64_MAX));
    }
}

static void visit(Op *op, void *context)
{
    const Checks *checks = context;
    if (op->opcode == OP_call)
        pass_ranges(checks, op);
    else if (tt_has(op, ACCESS) && tt_pointer_param(checks->pointers, tt_operand(op, 0)) >= 0)
        check_access(checks, op);
}

void tt_check_bounds(Module *module)
{
    TT_FOR_FUNCTIONS(function, module)
    {
        const ParamPointers *pointers = tt_analyze_param_pointers(function, module->arena);
        Checks checks = {pointers, add_range_params(function)};
        tt_walk(function->body, visit, &checks);
    }
}
