/* Tile IR as text, the form that parse.c reads back to the same IR. One syntax for every operation:
 *
 *   kernel @name(%x: ptr<f32> {divisibility = [16]}, %n: i32) {      (`func` for what kernels call)
 *     %a, %b = opname %x, %n {axis = 0, order = [1, 0]} : tile<4x8xf32>, i32 loc("file.py":3:4)
 *     %s = for %l, %u, %t, %z : f32 { ^(%i: i32, %acc: f32):
 *       yield %acc
 *     }
 *     return
 *   }
 *
 * A buffer's type says how many slots it has and what each holds: `buffer<3, 64x32xf16>`.
 *
 * Once layouts are assigned, a type is followed by its value's (`tile<64xf32> #0`), and lines
 * `#0 = layout<64> {...}` stand before the functions (layouts.c).
 *
 * A value is called after the user's variable, made unique, or by a number. Attributes come in the order of
 * attrs.def; floats are the shortest text that reads back to the same bits of their type. */
#include "ir/ir.h"
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct NamedValue {
    const Value *value;
    const char *name; /* NULL: its number */
    int number;
} NamedValue;

typedef struct Printer {
    Text *text;
    int flags;
    const Map *notes;   /* Op* or Function* -> text to print under its line, or NULL */
    const Map *layouts; /* LinearLayout* -> its number, plus one */
    Map taken;          /* names in use in this function -> the number to try behind it next */
    TT_VECTOR(NamedValue) values;
    int numbers;
    const Loc *caller; /* that was printed last, and where it stands in the text */
    size_t callers_at, callers_length;
} Printer;

/* ---- names --------------------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

/* The name as the parser reads it, or NULL when nothing is left of it (a bare number would be taken for one
 * of ours). */
static char *clean_name(Arena *arena, const char *name)
{
    if (!name || !*name || strspn(name, "0123456789") == strlen(name))
        return NULL;
    char *clean = tt_arena_strdup(arena, name);
    for (char *c = clean; *c; c++)
        if (!is_name_char(*c))
            *c = '_';
    return clean;
}

static const char *unique_name(Printer *p, const Value *value)
{
    char *name = clean_name(p->text->arena, value->name);
    if (!name)
        return NULL;
    const char *candidate = name;
    intptr_t next = (intptr_t)tt_map_find(&p->taken, name, strlen(name));
    while (next && tt_map_find(&p->taken, candidate, strlen(candidate)))
        candidate = tt_arena_format(p->text->arena, "%s_%d", name, (int)next++);
    *tt_map_slot(&p->taken, candidate, strlen(candidate)) = (void *)(intptr_t)1;
    *tt_map_slot(&p->taken, name, strlen(name)) = (void *)TT_MAX(next, (intptr_t)1);
    return candidate;
}

/* Value.id becomes the index in p->values; the entry tells whether an id is from this printing or an older
 * one. */
static void name_value(Printer *p, Value *value)
{
    const char *name = unique_name(p, value);
    value->id = p->values.count;
    tt_push(p->text->arena, p->values, ((NamedValue){value, name, name ? 0 : p->numbers++}));
}

static void print_value(const Printer *p, const Value *value)
{
    tt_text_add_n(p->text, "%", 1);
    if (!value) {
        tt_text_add_string(p->text, "null");
        return;
    }
    const NamedValue *named =
        value->id >= 0 && value->id < p->values.count ? &p->values.data[value->id] : NULL;
    if (!named || named->value != value)
        tt_text_add_string(p->text, "undefined"); /* only in IR that the verifier is about to refuse */
    else if (named->name)
        tt_text_add_string(p->text, named->name);
    else
        tt_text_add_number(p->text, named->number);
}

/* Quoted and escaped. */
static void print_string(Text *text, const char *string)
{
    tt_text_add_n(text, "\"", 1);
    const char *plain = string; /* since here */
    for (const char *c = string; *c; c++) {
        bool is_marked = *c == '"' || *c == '\\';
        if (!is_marked && (unsigned char)*c >= 0x20 && *c != 0x7f)
            continue;
        tt_text_add_n(text, plain, (size_t)(c - plain));
        plain = c + 1;
        tt_text_add(text, is_marked ? "\\%c" : "\\x%02x", (unsigned char)*c);
    }
    tt_text_add_string(text, plain);
    tt_text_add_n(text, "\"", 1);
}

static void print_symbol(Text *text, const char *name)
{
    bool plain = *name != 0;
    for (const char *c = name; *c; c++)
        plain &= is_name_char(*c);
    tt_text_add_n(text, "@", 1);
    if (plain)
        tt_text_add_string(text, name);
    else
        print_string(text, name);
}

/* ---- types, numbers, strings --------------------------------------------------------------------------- */

void tt_print_type(Text *text, const Type *type)
{
    tt_text_add_string(text, tt_type_name(type->kind));
    if (type->kind != TT_TILE && type->kind != TT_PTR && type->kind != TT_BUFFER)
        return;
    tt_text_add_n(text, "<", 1);
    if (type->kind == TT_BUFFER)
        tt_text_add(text, "%d, ", type->slots);
    for (int i = 0; i < type->rank; i++)
        tt_text_add(text, "%lldx", (long long)type->shape[i]);
    tt_print_type(text, type->element);
    if (type->kind == TT_PTR && type->space != 1)
        tt_text_add(text, ", %d", type->space);
    tt_text_add_n(text, ">", 1);
}

static void print_float(Text *text, double value, const Type *type)
{
    if (isnan(value) || isinf(value)) {
        tt_text_add(text, "%s%s", signbit(value) ? "-" : "", isnan(value) ? "nan" : "inf");
        return;
    }
    char digits[40];
    locale_t previous =
        uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* glibc's own object: nothing to free */
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (tt_round_to(type, strtod(digits, NULL)) == value)
            break;
    }
    uselocale(previous);
    tt_text_add(text, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void print_type_of(const Printer *p, const Value *value)
{
    tt_print_type(p->text, value->type);
    void *number = value->layout && p->layouts ? tt_map_find_ptr(p->layouts, value->layout) : NULL;
    if (number)
        tt_text_add(p->text, " #%d", (int)(intptr_t)number - 1);
}

/* ---- attributes and locations -------------------------------------------------------------------------- */

static void print_attr(Text *text, const Attr *attr, const Type *type)
{
    tt_text_add(text, "%s = ", tt_attr_names[attr->key]);
    switch (tt_attr_kinds[attr->key]) {
    case TT_ATTR_STRING:
        print_string(text, attr->s);
        break;
    case TT_ATTR_INTS:
        tt_text_add_n(text, "[", 1);
        for (int i = 0; i < attr->count; i++)
            tt_text_add(text, "%s%lld", i ? ", " : "", (long long)attr->ints[i]);
        tt_text_add_n(text, "]", 1);
        break;
    case TT_ATTR_SCALAR:
        if (type && tt_is_float(type)) {
            print_float(text, attr->f, type);
            break;
        }
        /* fall through */
    case TT_ATTR_INT:
        tt_text_add_number(text, attr->i);
    }
}

/* `type` decides how a SCALAR is read. */
static void print_attrs(Text *text, const Attr *attrs, const Type *type)
{
    const char *before = " {";
    for (int key = 0; attrs && key < TT_ATTR_KEYS; key++)
        for (const Attr *attr = attrs; attr; attr = attr->next)
            if ((int)attr->key == key) {
                tt_text_add_string(text, before);
                print_attr(text, attr, type);
                before = ", ";
            }
    if (attrs)
        tt_text_add_n(text, "}", 1);
}

static void print_place(Text *text, const Loc *loc)
{
    print_string(text, loc->file ? loc->file : "");
    tt_text_add_n(text, ":", 1);
    tt_text_add_number(text, loc->line);
    tt_text_add_n(text, ":", 1);
    tt_text_add_number(text, loc->column);
    if (loc->end_line || loc->end_column)
        tt_text_add(text, " to %d:%d", loc->end_line, loc->end_column);
    if (loc->function) {
        tt_text_add_string(text, " in ");
        print_string(text, loc->function);
    }
}

/* Those that called, innermost first. What a call brought mostly stands together: their text is that of before. */
static void print_callers(Printer *p, const Loc *caller)
{
    Text *text = p->text;
    if (caller == p->caller) {
        tt_text_add_n(text, text->data + p->callers_at, p->callers_length);
        return;
    }
    p->caller = caller;
    p->callers_at = text->length;
    for (const Loc *loc = caller; loc; loc = loc->caller) {
        tt_text_add_string(text, " at ");
        print_place(text, loc);
    }
    p->callers_length = text->length - p->callers_at;
}

/* loc("file":line:column[ to line:column][ in "function"][ at "file":...]), the last part for the caller. */
static void print_loc(Printer *p, const Loc *loc)
{
    if (!loc || !(p->flags & TT_PRINT_LOCATIONS))
        return;
    tt_text_add_string(p->text, " loc(");
    print_place(p->text, loc);
    if (loc->caller)
        print_callers(p, loc->caller);
    tt_text_add_n(p->text, ")", 1);
}

/* ---- operations and functions -------------------------------------------------------------------------- */

/* Of thousands of regions in one another each would be a line as long as there are outer ones. */
static void indent(const Printer *p, int depth)
{
    enum { DEEPEST = 32 };
    for (int i = 0; i < TT_MIN(depth, DEEPEST); i++)
        tt_text_add_n(p->text, "  ", 2);
}

/* Each line of what the verifier has to say about `subject`. */
static void print_notes(const Printer *p, const void *subject, int depth)
{
    const char *note = p->notes ? tt_map_find_ptr(p->notes, subject) : NULL;
    while (note && *note) {
        int length = (int)strcspn(note, "\n");
        indent(p, depth);
        tt_text_add(p->text, "^ %.*s\n", length, note);
        note += length + (note[length] == '\n');
    }
}

static void print_args(Printer *p, const Region *region, Attr *const *attrs)
{
    tt_text_add_n(p->text, "(", 1);
    for (int i = 0; i < region->arg_count; i++) {
        name_value(p, region->args[i]);
        tt_text_add_string(p->text, i ? ", " : "");
        print_value(p, region->args[i]);
        tt_text_add_string(p->text, ": ");
        print_type_of(p, region->args[i]);
        if (attrs)
            print_attrs(p->text, attrs[i], region->args[i]->type);
    }
    tt_text_add_n(p->text, ")", 1);
}

static void print_op(Printer *p, const Op *op, int depth);

static void print_region(Printer *p, const Op *op, int index, int depth)
{
    const Region *region = op->regions[index];
    bool noted = index == 0 && p->notes && tt_map_find_ptr(p->notes, op);
    tt_text_add_string(p->text, " {");
    if (region->arg_count) {
        tt_text_add_string(p->text, " ^");
        print_args(p, region, NULL);
        tt_text_add_string(p->text, ":");
    }
    if (region->first || region->arg_count || noted) {
        tt_text_add_string(p->text, "\n");
        if (noted)
            print_notes(p, op, depth);
        TT_FOR_OPS(inner, region)
        print_op(p, inner, depth + 1);
        indent(p, depth);
    }
    tt_text_add_string(p->text, "}");
}

static void print_op(Printer *p, const Op *op, int depth)
{
    indent(p, depth);
    for (int i = 0; i < op->result_count; i++) {
        name_value(p, op->results[i]);
        print_value(p, op->results[i]);
        tt_text_add_string(p->text, i + 1 < op->result_count ? ", " : " = ");
    }
    tt_text_add_string(p->text, tt_op_infos[op->opcode].name);
    for (int i = 0; i < op->operand_count; i++) {
        tt_text_add_string(p->text, i ? ", " : " ");
        print_value(p, tt_operand(op, i));
    }
    print_attrs(p->text, op->attrs, op->result_count ? op->results[0]->type : NULL);
    for (int i = 0; i < op->result_count; i++) {
        tt_text_add_string(p->text, i ? ", " : " : ");
        print_type_of(p, op->results[i]);
    }
    print_loc(p, op->loc);
    for (int i = 0; i < op->region_count; i++)
        print_region(p, op, i, depth);
    tt_text_add_string(p->text, "\n");
    if (!op->region_count)
        print_notes(p, op, depth);
}

static void print_function(const Function *function, Text *text, int flags, const Map *notes,
                           const Map *layouts)
{
    Printer printer = {
        .text = text, .flags = flags, .notes = notes, .layouts = layouts, .taken = {.arena = text->arena}};
    Printer *p = &printer;
    tt_text_add(text, function->is_kernel ? "kernel " : "func ");
    print_symbol(text, function->name);
    print_args(p, function->body, function->param_attrs);
    for (int i = 0; i < function->result_count; i++) {
        tt_text_add_string(text, i ? ", " : " -> (");
        tt_print_type(text, function->result_types[i]);
    }
    tt_text_add(text, function->result_count ? ")" : "");
    print_loc(p, function->loc);
    tt_text_add_string(text, " {\n");
    print_notes(p, function, 0);
    TT_FOR_OPS(op, function->body)
    print_op(p, op, 1);
    tt_text_add_string(text, "}\n");
}

/* Numbers a value's layout where it is first met, and prints it. */
static void print_new_layout(Text *text, Map *layouts, const Value *value)
{
    if (!value->layout)
        return;
    void **slot = tt_map_slot_ptr(layouts, value->layout);
    if (*slot)
        return;
    *slot = (void *)(intptr_t)layouts->count;
    tt_text_add(text, "#%d = ", layouts->count - 1);
    tt_print_layout(text, value->layout);
    tt_text_add_n(text, "\n", 1);
}

static void print_layouts(Text *text, Map *layouts, const Region *region)
{
    for (int i = 0; i < region->arg_count; i++)
        print_new_layout(text, layouts, region->args[i]);
    TT_FOR_OPS(op, region)
    {
        for (int i = 0; i < op->result_count; i++)
            print_new_layout(text, layouts, op->results[i]);
        for (int i = 0; i < op->region_count; i++)
            print_layouts(text, layouts, op->regions[i]);
    }
}

char *tt_print_annotated(const Module *module, Arena *arena, int flags, const Map *notes)
{
    Text text = {.arena = arena};
    Map layouts = {.arena = arena};
    TT_FOR_FUNCTIONS(function, module)
    print_layouts(&text, &layouts, function->body);
    TT_FOR_FUNCTIONS(function, module)
    {
        tt_text_add(&text, "%s", text.length ? "\n" : "");
        print_function(function, &text, flags, notes, &layouts);
    }
    return text.data ? text.data : tt_arena_strdup(arena, "");
}

char *tt_print_module(const Module *module, Arena *arena, int flags)
{
    return tt_print_annotated(module, arena, flags, NULL);
}
