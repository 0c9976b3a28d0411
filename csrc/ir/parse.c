/* Reads the text that print.c writes (its header shows the syntax), with // comments besides. One pass over
 * the characters; every mistake is a user error at its line and column. Only what the parser itself needs is
 * checked here (names, types, numbers, how many regions): whether the IR makes sense is for the verifier to
 * say. */
#include "ir/ir.h"
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>

enum { MOST_STACK = 2 << 20, LARGEST_TILE = 1 << 30 };

typedef struct Parser {
    Module *module;
    const char *file, *cursor, *line_start;
    int line;
    StackUse stack;
    Function *function;
    Map opcodes; /* name -> its row in tt_op_infos */
    Map values;  /* name -> Value*, of the current function */
    Map layouts; /* number as text -> LinearLayout* */
} Parser;

typedef TT_VECTOR(const Type *) Types;
typedef TT_VECTOR(Value *) Values;
typedef TT_VECTOR(const char *) Names;
typedef TT_VECTOR(const LinearLayout *) Layouts;
typedef TT_VECTOR(Attr *) AttrLists;

/* ---- characters and words ------------------------------------------------------------------------------ */

static const Loc *here(const Parser *p)
{
    Loc *loc = TT_NEW(p->module->arena, Loc);
    *loc = (Loc){.file = p->file, .line = p->line, .column = (int)(p->cursor - p->line_start)};
    return loc;
}

static _Noreturn void expected(const Parser *p, const char *what)
{
    int length = 0;
    while (length < 20 && (unsigned char)p->cursor[length] > ' ')
        length++;
    if (length)
        tt_error(here(p), "expected %s before '%.*s'", what, length, p->cursor);
    tt_error(here(p), "expected %s before the end of the %s", what, *p->cursor ? "line" : "text");
}

static void skip_space(Parser *p)
{
    for (;; p->cursor++) {
        if (p->cursor[0] == '/' && p->cursor[1] == '/')
            p->cursor += strcspn(p->cursor, "\n");
        if (*p->cursor == '\n') {
            p->line++;
            p->line_start = p->cursor + 1;
        } else if (*p->cursor != ' ' && *p->cursor != '\t' && *p->cursor != '\r') {
            return;
        }
    }
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

static bool accept(Parser *p, const char *token)
{
    skip_space(p);
    size_t length = strlen(token);
    if (strncmp(p->cursor, token, length) ||
        (is_name_char(token[length - 1]) && is_name_char(p->cursor[length])))
        return false;
    p->cursor += length;
    return true;
}

static void expect(Parser *p, const char *token)
{
    if (!accept(p, token))
        expected(p, tt_arena_format(p->module->arena, "'%s'", token));
}

static const char *parse_word(Parser *p, const char *what)
{
    skip_space(p);
    size_t length = 0;
    while (is_name_char(p->cursor[length]))
        length++;
    if (!length)
        expected(p, what);
    p->cursor += length;
    return tt_arena_strndup(p->module->arena, p->cursor - length, length);
}

static int64_t parse_int(Parser *p)
{
    skip_space(p);
    char *end;
    errno = 0;
    const char *digits = p->cursor + (*p->cursor == '-');
    int64_t value = isdigit((unsigned char)*digits) ? strtoll(p->cursor, &end, 10) : (end = NULL, 0);
    if (!end)
        expected(p, "an integer");
    if (errno == ERANGE)
        tt_error(here(p), "the number does not fit in 64 bits");
    p->cursor = end;
    return value;
}

static int parse_small_int(Parser *p)
{
    int64_t value = parse_int(p);
    if (value != (int)value)
        tt_error(here(p), "%lld does not fit in 32 bits", (long long)value);
    return (int)value;
}

static double parse_float(Parser *p)
{
    skip_space(p);
    if (!strchr("+-.0123456789in", *p->cursor))
        expected(p, "a number");
    char *end;
    locale_t previous =
        uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* glibc's own object: nothing to free */
    double value = strtod(p->cursor, &end);
    uselocale(previous);
    if (end == p->cursor)
        expected(p, "a number");
    p->cursor = end;
    return value;
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c)            ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

static char parse_escape(Parser *p)
{
    char c = *++p->cursor;
    if (c == '"' || c == '\\')
        return c;
    int high = c == 'x' ? hex_digit(p->cursor[1]) : -1;
    int low = high >= 0 ? hex_digit(p->cursor[2]) : -1;
    if (low < 0 || high + low == 0)
        tt_error(here(p), "an escape in a string is \\\", \\\\ or \\xHH, and not \\x00");
    p->cursor += 2;
    return (char)(high << 4 | low);
}

static const char *parse_string(Parser *p)
{
    expect(p, "\"");
    Text text = {.arena = p->module->arena};
    for (; *p->cursor != '"'; p->cursor++) {
        if (!*p->cursor || *p->cursor == '\n')
            tt_error(here(p), "the string does not end on its line");
        char c = *p->cursor == '\\' ? parse_escape(p) : *p->cursor;
        tt_text_add_n(&text, &c, 1);
    }
    p->cursor++;
    return text.data ? text.data : "";
}

static const char *parse_symbol(Parser *p)
{
    expect(p, "@");
    return *p->cursor == '"' ? parse_string(p) : parse_word(p, "a name");
}

static const char *parse_value_name(Parser *p)
{
    expect(p, "%");
    return parse_word(p, "the name of a value");
}

/* ---- types --------------------------------------------------------------------------------------------- */

/* As much as the front ends take: what they made is read back. */
static void check_depth(Parser *p)
{
    if (tt_stack_is_short(&p->stack, MOST_STACK))
        tt_error(here(p), "this is nested too deeply");
}

static const Type *parse_type(Parser *p);

static const Type *parse_tile(Parser *p)
{
    int64_t shape[TT_MAX_RANK], count = 1;
    int rank = 0;
    for (skip_space(p); isdigit((unsigned char)*p->cursor); rank++) {
        if (rank == TT_MAX_RANK)
            tt_error(here(p), "a tile has at most %d dimensions", TT_MAX_RANK);
        shape[rank] = parse_int(p);
        if (shape[rank] < 1 || shape[rank] > LARGEST_TILE || (count *= shape[rank]) > LARGEST_TILE)
            tt_error(here(p), "a tile has at least 1 and at most %d elements", LARGEST_TILE);
        if (*p->cursor++ != 'x') {
            p->cursor--;
            expected(p, "'x'");
        }
    }
    if (!rank)
        expected(p, "the extents of the tile");
    const Type *element = parse_type(p);
    if (element->kind > TT_PTR)
        tt_error(here(p), "a tile's elements are scalars or pointers");
    expect(p, ">");
    return tt_tile_type(p->module, element, shape, rank);
}

static const Type *parse_buffer(Parser *p)
{
    const Loc *loc = here(p);
    int slots = parse_small_int(p);
    expect(p, ",");
    const Type *tile = parse_tile(p);
    if (slots < 1 || tile->element->kind == TT_PTR)
        tt_error(loc, "a buffer has slots, and their elements are scalars");
    return tt_buffer_type(p->module, tile, slots);
}

static const Type *parse_type(Parser *p)
{
    const Loc *loc = here(p);
    check_depth(p);
    const char *word = parse_word(p, "a type");
    const Type *type = NULL;
    for (TypeKind kind = 0; kind < TT_PTR; kind++)
        if (!strcmp(word, tt_type_name(kind)))
            type = tt_scalar_type(p->module, kind);
    if (!strcmp(word, tt_type_name(TT_VOID))) {
        type = tt_scalar_type(p->module, TT_VOID);
    } else if (!strcmp(word, tt_type_name(TT_PTR))) {
        expect(p, "<");
        const Type *pointee = parse_type(p);
        type = tt_ptr_type(p->module, pointee, accept(p, ",") ? parse_small_int(p) : 1);
        expect(p, ">");
    } else if (!strcmp(word, tt_type_name(TT_TILE))) {
        expect(p, "<");
        type = parse_tile(p);
    } else if (!strcmp(word, tt_type_name(TT_BUFFER))) {
        expect(p, "<");
        type = parse_buffer(p);
    }
    if (!type)
        tt_error(loc, "unknown type '%s'", word);
    return type;
}

/* ---- layouts ------------------------------------------------------------------------------------------- */

static const char *parse_layout_name(Parser *p)
{
    expect(p, "#");
    return parse_word(p, "the number of a layout");
}

/* The layout after a type, or NULL. */
static const LinearLayout *parse_layout_use(Parser *p, const Type *type)
{
    skip_space(p);
    if (*p->cursor != '#')
        return NULL;
    const Loc *loc = here(p);
    const char *name = parse_layout_name(p);
    const LinearLayout *layout = tt_map_find(&p->layouts, name, strlen(name));
    if (!layout)
        tt_error(loc, "layout #%s is not defined yet", name);
    if (!tt_layout_fits(layout, type))
        tt_error(loc, "layout #%s has another shape", name);
    if (tt_is_tile(type))
        p->module->stage = STAGE_LAYOUTS;
    return layout;
}

/* One coordinate, or (one, for, each, dimension). */
static uint64_t parse_base(Parser *p, const LinearLayout *layout)
{
    uint64_t base = 0;
    if (layout->rank > 1)
        expect(p, "(");
    for (int axis = 0; axis < layout->rank; axis++) {
        if (axis)
            expect(p, ",");
        const Loc *loc = here(p);
        int64_t coordinate = parse_int(p);
        if (coordinate < 0 || coordinate >= 1ll << layout->out_bits[axis])
            tt_error(loc, "the coordinate lies outside of the layout's shape");
        base |= (uint64_t)coordinate << tt_layout_axis_start(layout, axis);
    }
    if (layout->rank > 1)
        expect(p, ")");
    return base;
}

static void parse_bases(Parser *p, LinearLayout *layout, int input)
{
    expect(p, "=");
    expect(p, "[");
    if (accept(p, "]"))
        return;
    int at = tt_layout_in_total(layout);
    do {
        if (at == (int)TT_COUNT(layout->bases))
            tt_error(here(p), "a layout has at most %d place bits", (int)TT_COUNT(layout->bases));
        layout->bases[at++] = parse_base(p, layout);
        layout->in_bits[input]++;
    } while (accept(p, ","));
    expect(p, "]");
}

static LinearLayout parse_layout_shape(Parser *p)
{
    int64_t shape[TT_MAX_RANK];
    int rank = 0, bits = 0;
    expect(p, "layout");
    expect(p, "<");
    do {
        if (rank == TT_MAX_RANK)
            tt_error(here(p), "a layout has at most %d dimensions", TT_MAX_RANK);
        shape[rank] = parse_int(p);
        if (!tt_is_pow2(shape[rank]) || shape[rank] > LARGEST_TILE || (bits += tt_log2(shape[rank])) > 30)
            tt_error(here(p), "a layout's extents are powers of two of at most %d in all", LARGEST_TILE);
        rank++;
    } while (*p->cursor == 'x' && p->cursor++);
    expect(p, ">");
    return tt_layout_empty(shape, rank);
}

static void parse_layout(Parser *p)
{
    const char *name = parse_layout_name(p);
    expect(p, "=");
    LinearLayout layout = parse_layout_shape(p);
    expect(p, "{");
    int last = -1;
    do {
        const Loc *loc = here(p);
        int input = tt_layout_input_named(parse_word(p, "'registers', 'lanes', 'warps' or 'blocks'"));
        if (input <= last)
            tt_error(loc, "expected 'registers', 'lanes', 'warps', 'blocks' in this order");
        parse_bases(p, &layout, last = input);
    } while (accept(p, ","));
    expect(p, "}");
    *tt_map_slot(&p->layouts, name, strlen(name)) = (void *)tt_intern_layout(p->module, &layout);
}

/* ---- attributes and locations -------------------------------------------------------------------------- */

static AttrKey parse_attr_key(Parser *p)
{
    const Loc *loc = here(p);
    const char *name = parse_word(p, "the name of an attribute");
    for (int key = 0; key < TT_ATTR_KEYS; key++)
        if (!strcmp(name, tt_attr_names[key]))
            return (AttrKey)key;
    tt_error(loc, "unknown attribute '%s'", name);
}

static Attr *parse_ints(Parser *p, AttrKey key)
{
    int64_t values[TT_MAX_RANK];
    int count = 0;
    expect(p, "[");
    if (!accept(p, "]")) {
        do {
            if (count == TT_MAX_RANK)
                tt_error(here(p), "a list holds at most %d numbers", TT_MAX_RANK);
            values[count++] = parse_int(p);
        } while (accept(p, ","));
        expect(p, "]");
    }
    return tt_attr_ints(p->module, key, values, count, NULL);
}

/* What comes later decides whether a SCALAR is an integer or a float, so its place is kept and read again
 * then. */
typedef struct Attrs {
    Attr *list;
    Attr *scalar;
    Parser scalar_at;
} Attrs;

static Attr *parse_attr(Parser *p, Attrs *attrs)
{
    skip_space(p);
    AttrKey key = parse_attr_key(p);
    expect(p, "=");
    skip_space(p);
    switch (tt_attr_kinds[key]) {
    case TT_ATTR_INTS:
        return parse_ints(p, key);
    case TT_ATTR_STRING:
        return tt_attr_string(p->module, key, parse_string(p), NULL);
    case TT_ATTR_INT:
        return tt_attr_int(p->module, key, parse_int(p), NULL);
    case TT_ATTR_SCALAR:
        attrs->scalar_at = *p;
        parse_float(p);
        return attrs->scalar = tt_attr_int(p->module, key, 0, NULL);
    }
    expected(p, "a value");
}

/* The braces after the operands are attributes, and not a region, when they begin with `name =`. */
static bool at_attrs(const Parser *p)
{
    Parser ahead = *p;
    if (!accept(&ahead, "{"))
        return false;
    skip_space(&ahead);
    if (!is_name_char(*ahead.cursor))
        return false;
    while (is_name_char(*ahead.cursor))
        ahead.cursor++;
    return accept(&ahead, "=");
}

static Attrs parse_attrs(Parser *p)
{
    Attrs attrs = {0};
    if (!at_attrs(p))
        return attrs;
    expect(p, "{");
    Attr **link = &attrs.list;
    do {
        Attr *attr = parse_attr(p, &attrs);
        for (Attr *other = attrs.list; other; other = other->next)
            if (other->key == attr->key)
                tt_error(here(p), "attribute '%s' is given twice", tt_attr_names[attr->key]);
        *link = attr;
        link = &attr->next;
    } while (accept(p, ","));
    expect(p, "}");
    return attrs;
}

static void parse_scalar_attr(Attrs *attrs, const Type *type)
{
    Parser *p = &attrs->scalar_at;
    if (!attrs->scalar)
        return;
    if (type && tt_is_float(type))
        attrs->scalar->f = tt_round_to(type, parse_float(p));
    else
        attrs->scalar->i = parse_int(p);
    skip_space(p);
    if (*p->cursor != ',' && *p->cursor != '}')
        expected(p, "an integer");
}

static const Loc *parse_loc(Parser *p)
{
    if (!accept(p, "loc"))
        return NULL;
    expect(p, "(");
    Loc *first = NULL, **link = &first;
    do {
        Loc *loc = *link = TT_NEW(p->module->arena, Loc);
        loc->file = parse_string(p);
        expect(p, ":");
        loc->line = parse_small_int(p);
        expect(p, ":");
        loc->column = parse_small_int(p);
        if (accept(p, "to")) {
            loc->end_line = parse_small_int(p);
            expect(p, ":");
            loc->end_column = parse_small_int(p);
        }
        if (accept(p, "in"))
            loc->function = parse_string(p);
        link = (Loc **)&loc->caller;
    } while (accept(p, "at"));
    expect(p, ")");
    return first;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static void define(Parser *p, Value *value, const char *name, const Loc *loc)
{
    void **slot = tt_map_slot(&p->values, name, strlen(name));
    if (*slot)
        tt_error(loc, "%%%s is defined twice", name);
    *slot = value;
    if (strspn(name, "0123456789") != strlen(name))
        value->name = tt_intern(p->module, name);
}

static Value *parse_operand(Parser *p)
{
    skip_space(p);
    const Loc *loc = here(p);
    const char *name = parse_value_name(p);
    Value *value = tt_map_find(&p->values, name, strlen(name));
    if (!value)
        tt_error(loc, "%%%s is not defined yet", name);
    return value;
}

static Opcode parse_opcode(Parser *p)
{
    skip_space(p);
    const Loc *loc = here(p);
    const char *name = parse_word(p, "an operation");
    const OpInfo *info = tt_map_find(&p->opcodes, name, strlen(name));
    if (!info)
        tt_error(loc, "unknown operation '%s'", name);
    return (Opcode)(info - tt_op_infos);
}

/* `attrs` is NULL where arguments have none. */
static void parse_args(Parser *p, Names *names, Types *types, Layouts *layouts, AttrLists *attrs)
{
    expect(p, "(");
    if (accept(p, ")"))
        return;
    do {
        tt_push(p->module->arena, *names, parse_value_name(p));
        expect(p, ":");
        tt_push(p->module->arena, *types, parse_type(p));
        tt_push(p->module->arena, *layouts, parse_layout_use(p, types->data[types->count - 1]));
        if (attrs) {
            Attrs parsed = parse_attrs(p);
            parse_scalar_attr(&parsed, types->data[types->count - 1]);
            tt_push(p->module->arena, *attrs, parsed.list);
        }
    } while (accept(p, ","));
    expect(p, ")");
}

static void parse_body(Parser *p, Region *region);

static void parse_region(Parser *p, Region *region)
{
    expect(p, "{");
    if (accept(p, "^")) {
        Names names = {0};
        Types types = {0};
        Layouts layouts = {0};
        const Loc *loc = here(p);
        parse_args(p, &names, &types, &layouts, NULL);
        expect(p, ":");
        for (int i = 0; i < types.count; i++) {
            Value *arg = tt_add_region_arg(region, types.data[i]);
            arg->layout = layouts.data[i];
            define(p, arg, names.data[i], loc);
        }
    }
    parse_body(p, region);
}

static void parse_op(Parser *p, Region *region)
{
    Arena *arena = p->module->arena;
    Names names = {0};
    Values operands = {0};
    Types types = {0};
    Layouts layouts = {0};
    skip_space(p);
    const Loc *start = here(p);
    if (*p->cursor == '%') {
        do
            tt_push(arena, names, parse_value_name(p));
        while (accept(p, ","));
        expect(p, "=");
    }
    Opcode opcode = parse_opcode(p);
    p->cursor += strspn(p->cursor, " \t"); /* a % on the next line begins another operation */
    if (*p->cursor == '%')
        do
            tt_push(arena, operands, parse_operand(p));
        while (accept(p, ","));
    Attrs attrs = parse_attrs(p);
    if (accept(p, ":"))
        do {
            tt_push(arena, types, parse_type(p));
            tt_push(arena, layouts, parse_layout_use(p, types.data[types.count - 1]));
        } while (accept(p, ","));
    if (types.count != names.count)
        tt_error(start, "%d results and %d types", names.count, types.count);
    parse_scalar_attr(&attrs, types.count ? types.data[0] : NULL);

    Builder builder = tt_builder_at_end(region);
    builder.raw = true;
    const Loc *loc = parse_loc(p);
    builder.loc = loc ? loc : start;
    const Type *none = NULL;
    Op *op = tt_build_op(&builder, opcode, operands.data, operands.count, types.data ? types.data : &none,
                         types.count, attrs.list);
    int first_stage = __builtin_ctz(tt_op_infos[opcode].stages); /* text does not say which it is in */
    p->module->stage = TT_MAX(p->module->stage, (Stage)first_stage);
    for (int i = 0; i < op->region_count; i++)
        parse_region(p, op->regions[i]);
    for (int i = 0; i < names.count; i++) {
        op->results[i]->layout = layouts.data[i];
        define(p, op->results[i], names.data[i], start);
    }
}

/* Operations up to the closing brace, which is taken too. */
static void parse_body(Parser *p, Region *region)
{
    check_depth(p);
    while (!accept(p, "}")) {
        if (!*p->cursor)
            expected(p, "'}'");
        parse_op(p, region);
    }
}

/* ---- functions ----------------------------------------------------------------------------------------- */

static void parse_function(Parser *p)
{
    Arena *arena = p->module->arena;
    bool is_kernel = accept(p, "kernel");
    if (!is_kernel)
        expect(p, "func");
    const Loc *start = here(p);
    const char *name = parse_symbol(p);
    if (tt_find_function(p->module, name))
        tt_error(start, "@%s is defined twice", name);
    Names names = {0};
    Types params = {0}, results = {0};
    Layouts layouts = {0};
    AttrLists attrs = {0};
    parse_args(p, &names, &params, &layouts, &attrs);
    if (accept(p, "->")) {
        expect(p, "(");
        do
            tt_push(arena, results, parse_type(p));
        while (accept(p, ","));
        expect(p, ")");
    }
    Function *function =
        tt_new_function(p->module, name, params.data, params.count, results.data, results.count);
    function->is_kernel = is_kernel;
    const Loc *loc = parse_loc(p);
    function->loc = loc ? loc : start;
    p->values = (Map){.arena = arena};
    for (int i = 0; i < params.count; i++) {
        define(p, function->body->args[i], names.data[i], start);
        function->body->args[i]->layout = layouts.data[i];
        function->param_attrs[i] = attrs.data[i];
    }
    expect(p, "{");
    parse_body(p, function->body);
}

Module *tt_parse_module(Arena *arena, const char *text, const char *file)
{
    Parser parser = {.module = tt_new_module(arena),
                     .file = tt_arena_strdup(arena, file),
                     .cursor = text,
                     .line_start = text,
                     .line = 1,
                     .stack = {.base = __builtin_frame_address(0)},
                     .opcodes = {.arena = arena},
                     .layouts = {.arena = arena}};
    Parser *p = &parser;
    for (int opcode = 0; opcode < TT_OPCODES; opcode++)
        *tt_map_slot(&p->opcodes, tt_op_infos[opcode].name, strlen(tt_op_infos[opcode].name)) =
            (void *)&tt_op_infos[opcode];
    for (skip_space(p); *p->cursor; skip_space(p))
        if (*p->cursor == '#')
            parse_layout(p);
        else
            parse_function(p);
    return p->module;
}
