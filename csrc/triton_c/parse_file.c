/* What stands at the top of a file: functions and constants. */
#include "triton_c/syntax.h"

static void parse_parameters(Parser *p, CFunction *function)
{
    TT_VECTOR(Declaration) parameters = {0};
    tt_c_expect(p, TOKEN_OPEN, "before parameters");
    bool only_void =
        p->next->kind == TOKEN_TYPE && p->next->dtype == &tt_void && p->next[1].kind == TOKEN_CLOSE;
    p->next += only_void;
    while (p->next->kind != TOKEN_CLOSE) {
        Declaration base = {0};
        bool is_tunable, is_kernel;
        if (!tt_c_parse_type(p, &base, &is_tunable, &is_kernel) || is_tunable || is_kernel)
            tt_c_unexpected(p, "the type of a parameter");
        Declaration *parameter = tt_c_parse_declarator(p, &base, false);
        for (int i = 0; i < parameters.count; i++)
            if (!strcmp(parameters.data[i].name, parameter->name))
                tt_c_fail_at(p, &parameter->loc, NULL, "there are two parameters called `%s`",
                             parameter->name);
        tt_push(p->arena, parameters, *parameter);
        if (!tt_c_accept(p, TOKEN_COMMA))
            break;
        if (p->next->kind == TOKEN_CLOSE)
            tt_c_unexpected(p, "a parameter");
    }
    tt_c_expect(p, TOKEN_CLOSE, "after parameters");
    function->parameters = parameters.data;
    function->parameter_count = parameters.count;
}

static void parse_function(Parser *p, CProgram *program, const Declaration *declared, bool is_kernel)
{
    CFunction *function = TT_NEW(p->arena, CFunction);
    *function = (CFunction){
        .name = declared->name, .is_kernel = is_kernel, .result = declared->dtype, .loc = declared->loc};
    for (int i = 0; i < program->functions.count; i++)
        if (!strcmp(program->functions.data[i]->name, function->name))
            tt_c_fail_at(p, &declared->loc, NULL, "there are two functions called `%s`", function->name);
    if (declared->extents.count)
        tt_c_fail_at(p, &declared->loc, "leave the extents out: the result has the shape of what is returned",
                     "%s", "a function does not declare the shape of its result");
    if (is_kernel && function->result != &tt_void)
        tt_c_fail_at(p, &declared->loc, "let it store its result through a pointer",
                     "the kernel `%s` returns a value, "
                     "and must return void",
                     function->name);
    parse_parameters(p, function);
    if (p->next->kind == TOKEN_SEMICOLON)
        tt_c_fail_at(p, &declared->loc, "leave it out: functions may be used before they are defined",
                     "`%s` is declared without its body", function->name);
    function->body = tt_c_parse_block(p);
    tt_push(p->arena, program->functions, function);
}

static void parse_values(Parser *p, CConstant *constant)
{
    if (!tt_c_accept(p, TOKEN_OPEN_BRACE)) {
        Node *value = tt_c_parse_assignment(p);
        tt_push(p->arena, constant->values, value);
        return;
    }
    if (!constant->is_tunable)
        tt_c_fail_at(p, &p->next[-1].loc, "`const tunable int N = {16, 32};` has values to choose among",
                     "%s", "a constant has one value");
    do {
        Node *value = tt_c_parse_assignment(p);
        tt_push(p->arena, constant->values, value);
    } while (tt_c_accept(p, TOKEN_COMMA) && p->next->kind != TOKEN_CLOSE_BRACE);
    tt_c_expect(p, TOKEN_CLOSE_BRACE, "after the values");
}

/* alloc_const int[512]: the extent is for the reader; how long the array is, the caller knows. */
static void parse_allocation(Parser *p, CConstant *constant)
{
    Declaration base = {0};
    bool is_tunable, is_kernel;
    const Loc *start = &p->next[-1].loc;
    if (!tt_c_parse_type(p, &base, &is_tunable, &is_kernel))
        tt_c_unexpected(p, "a type");
    Declaration *allocated = tt_c_parse_declarator(p, &base, true);
    const Dtype *pointer = constant->declaration->dtype;
    if (!tt_dtype_is_pointer(pointer) || pointer->pointee != allocated->dtype ||
        allocated->extents.count != 1)
        tt_c_fail_at(p, start, "as in `__constant__ int *table = alloc_const int[512];`", "%s",
                     "`alloc_const` takes the type that the pointer points to, and one extent");
    constant->is_array = true;
}

static void parse_constant(Parser *p, CProgram *program, const Declaration *declared, bool is_tunable)
{
    CConstant *constant = TT_NEW(p->arena, CConstant);
    *constant = (CConstant){.declaration = declared, .is_tunable = is_tunable};
    const Dtype *dtype = declared->dtype;
    for (int i = 0; i < program->constants.count; i++)
        if (!strcmp(program->constants.data[i]->declaration->name, declared->name))
            tt_c_fail_at(p, &declared->loc, NULL, "there are two constants called `%s`", declared->name);
    if (!tt_c_accept(p, TOKEN_ASSIGN))
        tt_c_fail_at(p, &declared->loc, is_tunable ? "give it the values to choose among: {16, 32}" : NULL,
                     "the constant `%s` has no value", declared->name);
    if (tt_c_accept(p, TOKEN_ALLOC_CONST))
        parse_allocation(p, constant);
    else
        parse_values(p, constant);
    bool is_number = !tt_dtype_is_pointer(dtype) && !declared->extents.count;
    if (is_tunable && (!is_number || !tt_dtype_is_int(dtype) || tt_dtype_is_bool(dtype)))
        tt_c_fail_at(p, &declared->loc, "as in `const tunable int N = {16, 32};`",
                     "`%s` is tunable and must be an integer", declared->name);
    if (!constant->is_array && !is_number)
        tt_c_fail_at(p, &declared->loc, "tiles and pointers are declared in functions",
                     "the constant `%s` of a file must be a number", declared->name);
    if (!constant->is_array && !declared->is_const && !is_tunable)
        tt_c_fail_at(p, &declared->loc, "write const before it", "`%s` is a variable outside of a function",
                     declared->name);
    tt_push(p->arena, program->constants, constant);
}

static void parse_external(Parser *p, CProgram *program)
{
    Declaration base = {0};
    bool is_tunable, is_kernel;
    if (p->next->kind == TOKEN_FOR || p->next->kind == TOKEN_WHILE || p->next->kind == TOKEN_IF)
        tt_c_fail_at(p, &p->next->loc,
                     "what prepares the arguments belongs in the program that launches the kernel", "%s",
                     "statements stand in functions");
    if (!tt_c_parse_type(p, &base, &is_tunable, &is_kernel))
        tt_c_unexpected(p, "a function or a constant");
    do {
        const Declaration *declared = tt_c_parse_declarator(p, &base, false);
        if (p->next->kind == TOKEN_OPEN) {
            if (is_tunable)
                tt_c_fail_at(p, &declared->loc, NULL, "the function `%s` cannot be tunable", declared->name);
            parse_function(p, program, declared, is_kernel);
            return;
        }
        if (is_kernel)
            tt_c_unexpected(p, "`(` after the name of a kernel");
        parse_constant(p, program, declared, is_tunable);
    } while (tt_c_accept(p, TOKEN_COMMA));
    tt_c_expect(p, TOKEN_SEMICOLON, "after a constant");
}

const CProgram *tt_c_parse(Arena *arena, const CSource *source, Map *pointers)
{
    CProgram *program = TT_NEW(arena, CProgram);
    Parser p = {.arena = arena, .pointers = pointers, .next = tt_c_lex(arena, source)};
    p.stack.base = __builtin_frame_address(0);
    while (p.next->kind != TOKEN_END)
        if (!tt_c_accept(&p, TOKEN_SEMICOLON))
            parse_external(&p, program);
    return program;
}
