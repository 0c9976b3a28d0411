/* The entries: what a program declares, and the build of one kernel. */
#include "ir/verify.h"
#include "triton_c/walker.h"

/* ---- kernels --------------------------------------------------------------------------------------------------------- */

/* Does any function of the program call this one? */
static bool calls(const Node *node, const char *name)
{
    if (!node)
        return false;
    if (node->kind == NODE_CALL && !strcmp(node->name, name))
        return true;
    const Node *children[] = {node->first, node->second, node->third, node->body};
    for (size_t i = 0; i < TT_COUNT(children); i++)
        if (calls(children[i], name))
            return true;
    for (int i = 0; i < node->items.count; i++)
        if (calls(node->items.data[i], name))
            return true;
    for (int i = 0; i < node->arguments.count; i++)
        if (calls(node->arguments.data[i], name))
            return true;
    return false;
}

static bool is_called(const CProgram *program, const char *name)
{
    for (int i = 0; i < program->functions.count; i++)
        if (calls(program->functions.data[i]->body, name))
            return true;
    return false;
}

/* A program that never says `kernel` means its functions that return nothing and that no other calls. */
static void mark_kernels(CProgram *program)
{
    for (int i = 0; i < program->functions.count; i++)
        if (program->functions.data[i]->is_kernel)
            return;
    for (int i = 0; i < program->functions.count; i++) {
        CFunction *function = program->functions.data[i];
        function->is_kernel = function->result == &tt_void && !is_called(program, function->name);
    }
}

static const CProgram *parse(Arena *arena, const CSource *source, Map *pointers)
{
    CProgram *program = (CProgram *)tt_c_parse(arena, source, pointers);
    mark_kernels(program);
    return program;
}

static const char *signature_of(Arena *arena, const Dtype *dtype)
{
    static const struct {
        const Dtype *dtype;
        const char *text;
    } names[] = {
        {&tt_int1, "i1"},    {&tt_int8, "i8"},     {&tt_int16, "i16"},       {&tt_int32, "i32"},
        {&tt_int64, "i64"},  {&tt_uint8, "u8"},    {&tt_uint16, "u16"},      {&tt_uint32, "u32"},
        {&tt_uint64, "u64"}, {&tt_fp16, "fp16"},   {&tt_bf16, "bf16"},       {&tt_fp32, "fp32"},
        {&tt_fp64, "fp64"},  {&tt_fp8e5, "fp8e5"}, {&tt_fp8e4nv, "fp8e4nv"},
    };
    if (tt_dtype_is_pointer(dtype)) {
        const char *pointee = signature_of(arena, dtype->pointee);
        return pointee ? tt_arena_format(arena, "*%s%s", dtype->is_const ? "k" : "", pointee) : NULL;
    }
    for (size_t i = 0; i < TT_COUNT(names); i++)
        if (names[i].dtype == dtype)
            return names[i].text;
    return NULL;
}

/* What a launch can pass: numbers, and pointers to them. */
static CParameter parameter_of(Arena *arena, const Declaration *d)
{
    const char *type = signature_of(arena, d->dtype);
    if (d->extents.count || !type || type[0] == '*') {
        const char *pointee = type && type[0] == '*' ? type + 1 + (type[1] == 'k') : NULL;
        if (d->extents.count || !pointee || *pointee == '*')
            tt_error_with_remedy(&d->loc, "take a pointer to numbers, and load from it",
                                 "a kernel takes numbers and pointers to numbers, and `%s` is neither",
                                 d->name);
    }
    return (CParameter){d->name, type};
}

/* ---- tunables -------------------------------------------------------------------------------------------------------- */

/* Numbers in front of expressions: their values are needed before there is a kernel. */
static int64_t tunable_value(const Node *node)
{
    bool negative = node->kind == NODE_UNARY && node->op == OPERATOR_NEG;
    const Node *number = negative ? node->first : node;
    if (number->kind != NODE_INT || number->integer > INT64_MAX)
        tt_error_with_remedy(&node->loc, "write the numbers themselves",
                             "the values of a tunable are integers");
    return negative ? -(int64_t)number->integer : (int64_t)number->integer;
}

static CTunable tunable_of(Arena *arena, const CConstant *constant)
{
    int64_t *values = TT_NEW_ARRAY(arena, int64_t, constant->values.count);
    for (int i = 0; i < constant->values.count; i++)
        values[i] = tunable_value(constant->values.data[i]);
    return (CTunable){constant->declaration->name, values, constant->values.count};
}

static CKernel describe_kernel(Arena *arena, const CProgram *program, const CFunction *function)
{
    TT_VECTOR(CParameter) parameters = {0};
    TT_VECTOR(CTunable) tunables = {0};
    for (int i = 0; i < function->parameter_count; i++)
        tt_push(arena, parameters, parameter_of(arena, &function->parameters[i]));
    for (int i = 0; i < program->constants.count; i++) {
        const CConstant *constant = program->constants.data[i];
        const char *name = constant->declaration->name;
        for (int j = 0; j < function->parameter_count; j++)
            if ((constant->is_array || constant->is_tunable) && !strcmp(name, function->parameters[j].name))
                tt_error_with_remedy(&function->parameters[j].loc, "give one of them another name",
                                     "`%s` is a parameter, and %s of the file", name,
                                     constant->is_array ? "a constant array" : "a tunable");
        if (constant->is_array)
            tt_push(arena, parameters, parameter_of(arena, constant->declaration));
        if (constant->is_tunable)
            tt_push(arena, tunables, tunable_of(arena, constant));
    }
    return (CKernel){.name = function->name,
                     .parameters = parameters.data,
                     .parameter_count = parameters.count,
                     .tunables = tunables.data,
                     .tunable_count = tunables.count,
                     .line = function->loc.line};
}

const CKernel *tt_triton_c_describe(Arena *arena, const CSource *source, int *count)
{
    Map pointers = {.arena = arena};
    const CProgram *program = parse(arena, source, &pointers);
    TT_VECTOR(CKernel) kernels = {0};
    for (int i = 0; i < program->functions.count; i++)
        if (program->functions.data[i]->is_kernel)
            tt_push(arena, kernels, describe_kernel(arena, program, program->functions.data[i]));
    *count = kernels.count;
    return kernels.data;
}

/* ---- building -------------------------------------------------------------------------------------------------------- */

static const CFunction *find_kernel(const CProgram *program, const char *name)
{
    for (int i = 0; i < program->functions.count; i++)
        if (program->functions.data[i]->is_kernel && !strcmp(program->functions.data[i]->name, name))
            return program->functions.data[i];
    tt_error(NULL, "the program has no kernel `%s`", name);
}

static const CArgument *argument_at(const CRequest *request, int index)
{
    return request->arguments ? &request->arguments[index] : NULL;
}

static void check_argument(CWalker *w, const CParameter *parameter, const CArgument *argument)
{
    if (!argument || !argument->type)
        return;
    const Dtype *given = tt_dtype_of_signature(&w->pointers, argument->type),
                *wanted = tt_dtype_of_signature(&w->pointers, parameter->type);
    bool same = given == wanted;
    if (given && tt_dtype_is_pointer(given) && tt_dtype_is_pointer(wanted))
        same = given->pointee == wanted->pointee;
    if (!same)
        tt_c_fail(w, NULL, "the parameter `%s` is of type %s, and the argument of type %s", parameter->name,
                  tt_c_dtype_name(w, wanted), given ? tt_c_dtype_name(w, given) : argument->type);
}

/* The kernel with the parameters that are neither None nor known. */
static Function *make_kernel(CWalker *w, const CKernel *kernel)
{
    TT_VECTOR(const Type *) types = {0};
    TT_VECTOR(int) numbers = {0};
    const CRequest *request = w->request;
    if (request->arguments && request->argument_count != kernel->parameter_count)
        tt_c_fail(w, NULL, "`%s` has %d parameters, and here are %d arguments", kernel->name,
                  kernel->parameter_count, request->argument_count);
    for (int i = 0; i < kernel->parameter_count; i++) {
        const CArgument *argument = argument_at(request, i);
        const CParameter *parameter = &kernel->parameters[i];
        check_argument(w, parameter, argument);
        if (argument && !argument->type)
            continue;
        tt_push(w->arena, types,
                tt_dtype_type(w->module, tt_dtype_of_signature(&w->pointers, parameter->type)));
        tt_push(w->arena, numbers, i);
    }
    Function *function = tt_new_function(w->module, kernel->name, types.data, types.count, NULL, 0);
    function->is_kernel = true;
    function->loc = w->builder.loc;
    for (int i = 0; i < types.count; i++) {
        const CArgument *argument = argument_at(request, numbers.data[i]);
        function->body->args[i]->name = tt_intern(w->module, kernel->parameters[numbers.data[i]].name);
        function->param_attrs[i] = tt_parameter_attrs(w->module, argument ? argument->divisibility : 1);
    }
    return function;
}

static Operand known_argument(CWalker *w, const CParameter *parameter, const Dtype *dtype,
                              const CArgument *argument)
{
    const Type *type = tt_dtype_type(w->module, dtype);
    if (tt_dtype_is_float(dtype))
        return (Operand){tt_build_float(&w->builder, type,
                                        argument->is_float ? argument->number : (double)argument->whole),
                         dtype, false};
    if (!tt_dtype_is_int(dtype) || argument->is_float)
        tt_c_fail(w, NULL, "the parameter `%s` is of type %s, and cannot be a constant %s", parameter->name,
                  tt_c_dtype_name(w, dtype), argument->is_float ? "float" : "integer");
    int64_t whole = argument->whole, bits = tt_bit_width(type);
    if (bits < 64 && (whole < -(1ll << (bits - 1)) || whole >= 1ll << bits))
        tt_c_fail(w, NULL, "the parameter `%s` is of type %s, which does not hold %lld", parameter->name,
                  tt_c_dtype_name(w, dtype), (long long)whole);
    return (Operand){tt_build_int(&w->builder, type, whole), dtype, false};
}

static Operand parameter_value(CWalker *w, const CKernel *kernel, int index, const Function *function,
                               int *next)
{
    const CArgument *argument = argument_at(w->request, index);
    const Dtype *dtype = tt_dtype_of_signature(&w->pointers, kernel->parameters[index].type);
    if (!argument || argument->type)
        return (Operand){function->body->args[(*next)++], dtype, false};
    if (argument->is_known)
        return known_argument(w, &kernel->parameters[index], dtype, argument);
    if (!tt_dtype_is_pointer(dtype))
        tt_c_fail(w, NULL, "the parameter `%s` is of type %s, and cannot be None",
                  kernel->parameters[index].name, tt_c_dtype_name(w, dtype));
    return (Operand){tt_build_filler(&w->builder, tt_dtype_type(w->module, dtype)), dtype, false};
}

static int64_t chosen_value(const CRequest *request, const CConstant *constant)
{
    for (int i = 0; i < request->tunable_count; i++)
        if (!strcmp(request->tunable_names[i], constant->declaration->name))
            return request->tunable_values[i];
    return tunable_value(constant->values.data[0]);
}

/* Constants of the file see those before them. */
static void add_constant(CWalker *w, const CConstant *constant, Operand array)
{
    const Declaration *d = constant->declaration;
    Variable variable = {.name = tt_intern(w->module, d->name), .dtype = d->dtype, .is_const = true};
    w->builder.loc = tt_c_loc(w, &d->loc);
    variable.loc = w->builder.loc;
    Operand x = array;
    if (constant->is_tunable)
        x = tt_c_int(w, d->dtype, chosen_value(w->request, constant));
    else if (!constant->is_array)
        x = tt_c_walk(w, constant->values.data[0]);
    const char *what = tt_arena_format(w->arena, "the constant `%s`", d->name);
    x = tt_c_convert(w, what, x, d->dtype);
    if (!constant->is_array && !tt_is_constant(x.value))
        tt_c_fail(w, NULL, "%s must be known at compile time", what);
    variable.value = x.value;
    tt_push(w->arena, w->globals, variable);
}

static void build(CWalker *w, const CFunction *function, const CKernel *kernel)
{
    w->builder.loc = tt_c_loc(w, &function->loc);
    const Loc *loc = w->builder.loc;
    Function *built = make_kernel(w, kernel);
    built->loc = loc;
    w->builder = tt_builder_at_end(built->body);
    w->builder.loc = loc;
    int next = 0, array = function->parameter_count;
    Operand *arguments = TT_NEW_ARRAY(w->arena, Operand, kernel->parameter_count);
    for (int i = 0; i < kernel->parameter_count; i++)
        arguments[i] = parameter_value(w, kernel, i, built, &next);
    Frame file = {.function = function}; /* without variables */
    w->frame = &file;
    for (int i = 0; i < w->program->constants.count; i++) {
        const CConstant *constant = w->program->constants.data[i];
        add_constant(w, constant, constant->is_array ? arguments[array++] : (Operand){0});
    }
    w->frame = NULL;
    w->builder.loc = loc;
    tt_c_inline(w, function, arguments, NULL);
    w->builder.loc = loc;
    tt_build_op(&w->builder, OP_return, NULL, 0, NULL, 0, NULL);
}

Module *tt_triton_c_build(Arena *arena, const CRequest *request, int64_t extents[3])
{
    CWalker *w = TT_NEW(arena, CWalker);
    *w = (CWalker){
        .arena = arena, .module = tt_new_module(arena), .request = request, .pointers = {.arena = arena}};
    w->builder.module = w->module;
    w->stack.base = __builtin_frame_address(0);
    w->program = parse(arena, &request->source, &w->pointers);
    const CFunction *function = find_kernel(w->program, request->kernel);
    CKernel kernel = describe_kernel(arena, w->program, function);
    build(w, function, &kernel);
    const char *broken = tt_verify(w->module, arena);
    if (broken)
        tt_bug("the front end of Triton-C built wrong tile IR for %s\n%s", request->kernel, broken);
    if (extents)
        memcpy(extents, w->extents, sizeof w->extents);
    return w->module;
}
