/* Declarations and statements, by recursive descent. The grammar is in docs/triton-c.md, a function here for each rule. */
#include "triton_c/syntax.h"

enum { MOST_NESTED = 200, DEEPEST_TREE = 1000, MOST_STACK = 1 << 20 };

/* ---- tokens --------------------------------------------------------------------------------------------------------- */

void tt_c_fail_at(Parser *p, const Loc *loc, const char *remedy, const char *format, const char *what)
{
    tt_error_with_remedy(tt_arena_copy(p->arena, loc, sizeof *loc), remedy, format, what);
}

static const char *found(Parser *p)
{
    const Token *token = p->next;
    if (token->kind == TOKEN_END)
        return "the end of the program";
    return token->kind == TOKEN_STRING ? "a string" : tt_arena_format(p->arena, "`%s`", token->text);
}

void tt_c_unexpected(Parser *p, const char *wanted)
{
    static const char *const foreign[] = {"struct", "union",   "enum",   "typedef", "switch",
                                          "case",   "default", "goto",   "do",      "sizeof",
                                          "auto",   "static",  "extern", "inline",  "volatile"};
    for (size_t i = 0; p->next->kind == TOKEN_NAME && i < TT_COUNT(foreign); i++)
        if (!strcmp(p->next->text, foreign[i]))
            tt_c_fail_at(p, &p->next->loc,
                         !strcmp(foreign[i], "do") ? "take `while`" : "docs/triton-c.md has what there is",
                         "`%s` of C is not part of Triton-C", foreign[i]);
    tt_c_fail_at(p, &p->next->loc, NULL, "%s",
                 tt_arena_format(p->arena, "%s is expected here, not %s", wanted, found(p)));
}

bool tt_c_accept(Parser *p, TokenKind kind)
{
    bool is_it = p->next->kind == kind;
    p->next += is_it;
    return is_it;
}

const Token *tt_c_expect(Parser *p, TokenKind kind, const char *where)
{
    if (p->next->kind != kind) {
        /* What is missing at the end of a line is missed there. */
        bool at_end = kind == TOKEN_SEMICOLON && p->next[-1].loc.line < p->next->loc.line;
        if (at_end) {
            Loc end = p->next[-1].loc;
            end.column = end.end_column;
            end.line = end.end_line;
            tt_c_fail_at(p, &end, NULL, "`;` is missing %s", where);
        }
        tt_c_unexpected(p, tt_arena_format(p->arena, "%s %s", tt_c_token_text(kind), where));
    }
    return p->next++;
}

void tt_c_enter(Parser *p)
{
    if (++p->depth > MOST_NESTED || tt_stack_is_short(&p->stack, MOST_STACK))
        tt_c_fail_at(p, &p->next->loc, "give parts of it names, or make functions of them", "%s",
                     "this is nested too deeply");
}

/* ---- nodes ---------------------------------------------------------------------------------------------------------- */

Node *tt_c_node(Parser *p, NodeKind kind, const Loc *from)
{
    Node *node = TT_NEW(p->arena, Node);
    node->kind = kind;
    node->loc = *from;
    return node;
}

static int deepest(const Nodes *nodes)
{
    int depth = 0;
    for (int i = 0; i < nodes->count; i++)
        depth = TT_MAX(depth, nodes->data[i]->depth);
    return depth;
}

Node *tt_c_end_node(Parser *p, Node *node)
{
    const Loc *end = &p->next[-1].loc;
    node->loc.end_line = end->end_line;
    node->loc.end_column = end->end_column;
    const Node *children[] = {node->first, node->second, node->third, node->body};
    node->depth = TT_MAX(deepest(&node->items), deepest(&node->arguments));
    for (size_t i = 0; i < TT_COUNT(children); i++)
        if (children[i])
            node->depth = TT_MAX(node->depth, children[i]->depth);
    if (++node->depth > DEEPEST_TREE)
        tt_c_fail_at(p, &node->loc, "give parts of it names", "%s", "this expression is too long");
    return node;
}

/* ---- types ----------------------------------------------------------------------------------------------------------- */

bool tt_c_starts_type(const Token *token)
{
    switch (token->kind) {
    case TOKEN_TYPE:
    case TOKEN_CONST:
    case TOKEN_UNSIGNED:
    case TOKEN_SIGNED:
    case TOKEN_SHORT:
    case TOKEN_INT:
    case TOKEN_LONG:
    case TOKEN_CHAR:
    case TOKEN_RESTRICT:
    case TOKEN_READ_ONLY:
    case TOKEN_CONSTANT:
    case TOKEN_TUNABLE:
    case TOKEN_KERNEL:
        return true;
    default:
        return false;
    }
}

/* What the words of an integer type say. */
typedef struct Words {
    int is_unsigned, is_signed, shorts, ints, longs, chars;
} Words;

static const Dtype *int_dtype(Parser *p, const Words *w, const Loc *from)
{
    int sizes = w->shorts + w->longs + w->chars;
    if (w->is_unsigned + w->is_signed > 1 || w->shorts > 1 || w->ints > 1 || w->chars > 1 || w->longs > 2 ||
        sizes > TT_MAX(1, w->longs) || (w->chars && w->ints))
        tt_c_fail_at(p, from, "there are char, short, int and long, each also unsigned", "%s",
                     "these words make no type");
    bool is_unsigned = w->is_unsigned;
    if (w->chars)
        return is_unsigned ? &tt_uint8 : &tt_int8;
    if (w->shorts)
        return is_unsigned ? &tt_uint16 : &tt_int16;
    if (w->longs)
        return is_unsigned ? &tt_uint64 : &tt_int64;
    return is_unsigned ? &tt_uint32 : &tt_int32;
}

/* `const` before a `*` is about what the pointer points to: see tt_c_parse_declarator. */
bool tt_c_parse_type(Parser *p, Declaration *declaration, bool *is_tunable, bool *is_kernel)
{
    Words w = {0};
    const Token *start = p->next;
    const Dtype *named = NULL;
    bool any_word = false, is_const = false;
    *is_tunable = *is_kernel = false;
    for (;; p->next++) {
        int *count = NULL;
        switch (p->next->kind) {
        case TOKEN_CONST:
        case TOKEN_CONSTANT:
            is_const = true;
            continue;
        case TOKEN_RESTRICT: /* promises, which nothing here depends on */
        case TOKEN_READ_ONLY:
            continue;
        case TOKEN_TUNABLE:
            *is_tunable = true;
            continue;
        case TOKEN_KERNEL:
            *is_kernel = true;
            continue;
        case TOKEN_TYPE:
            if (named || any_word)
                tt_c_unexpected(p, "a name");
            named = p->next->dtype;
            continue;
        case TOKEN_UNSIGNED:
            count = &w.is_unsigned;
            break;
        case TOKEN_SIGNED:
            count = &w.is_signed;
            break;
        case TOKEN_SHORT:
            count = &w.shorts;
            break;
        case TOKEN_INT:
            count = &w.ints;
            break;
        case TOKEN_LONG:
            count = &w.longs;
            break;
        case TOKEN_CHAR:
            count = &w.chars;
            break;
        default:
            if (p->next == start)
                return false;
            if (!named && !any_word)
                tt_c_unexpected(p, "a type");
            declaration->loc = start->loc;
            declaration->dtype = named ? named : int_dtype(p, &w, &start->loc);
            declaration->is_const = is_const;
            return true;
        }
        if (named)
            tt_c_unexpected(p, "a name");
        (*count)++;
        any_word = true;
    }
}

static void parse_extents(Parser *p, Declaration *d)
{
    if (!tt_c_accept(p, TOKEN_OPEN_BRACKET))
        return;
    do {
        if (p->next->kind == TOKEN_CLOSE_BRACKET)
            tt_c_unexpected(p, "an extent");
        Node *extent = tt_c_parse_assignment(p);
        tt_push(p->arena, d->extents, extent);
    } while (tt_c_accept(p, TOKEN_COMMA));
    tt_c_expect(p, TOKEN_CLOSE_BRACKET, "after the extents of a tile");
    if (p->next->kind == TOKEN_OPEN_BRACKET)
        tt_c_fail_at(p, &p->next->loc, "the extents of a tile stand in one pair of brackets: x[16, 16]", "%s",
                     "there are no arrays of arrays");
}

/* Qualifiers behind a `*` belong to the pointer: only const means something there. */
Declaration *tt_c_parse_declarator(Parser *p, const Declaration *base, bool is_cast)
{
    Declaration *d = tt_arena_copy(p->arena, base, sizeof *base);
    while (tt_c_accept(p, TOKEN_MUL)) {
        tt_c_enter(p);
        d->dtype = tt_dtype_pointer_to(p->pointers, d->dtype, 1, d->is_const);
        d->is_const = false;
        while (p->next->kind == TOKEN_CONST || p->next->kind == TOKEN_RESTRICT)
            d->is_const |= p->next++->kind == TOKEN_CONST;
    }
    for (const Dtype *dtype = d->dtype; dtype->kind == TT_PTR; dtype = dtype->pointee)
        tt_c_leave(p);
    if (!is_cast) {
        const Token *name = tt_c_expect(p, TOKEN_NAME, "after the type");
        d->name = name->text;
        d->loc = name->loc;
    }
    parse_extents(p, d);
    if (d->dtype == &tt_void && (is_cast || p->next->kind != TOKEN_OPEN))
        tt_c_fail_at(p, &d->loc, NULL, "%s", "there are no values of type void");
    return d;
}

/* ---- statements -------------------------------------------------------------------------------------------------------- */

static Node *parse_statement(Parser *p);

static Node *parse_declared(Parser *p, const Declaration *base)
{
    Node *node = tt_c_node(p, NODE_DECLARE, &p->next->loc);
    node->declaration = tt_c_parse_declarator(p, base, false);
    node->loc = node->declaration->loc;
    if (p->next->kind == TOKEN_OPEN)
        tt_c_fail_at(p, &node->loc, "define it at the top of the file",
                     "a function, `%s`, cannot stand in another one", node->declaration->name);
    if (tt_c_accept(p, TOKEN_ASSIGN)) {
        if (p->next->kind == TOKEN_OPEN_BRACE)
            tt_c_fail_at(p, &p->next->loc,
                         "a tile starts from one number, a range (0 ... 8) or an expression", "%s",
                         "a tile has no list of elements");
        node->first = tt_c_parse_assignment(p);
    }
    return tt_c_end_node(p, node);
}

/* float a = 1, *p[8]; as a block that opens no scope: the items of a DECLARE without a declaration. */
static Node *parse_declarations(Parser *p)
{
    Node *node = tt_c_node(p, NODE_DECLARE, &p->next->loc);
    Declaration base = {0};
    bool is_tunable, is_kernel;
    const Loc *start = &p->next->loc;
    tt_c_parse_type(p, &base, &is_tunable, &is_kernel);
    if (is_tunable || is_kernel)
        tt_c_fail_at(p, start, "move it to the top of the file", "`%s` stands at the top of the file only",
                     is_tunable ? "tunable" : "kernel");
    do {
        Node *declared = parse_declared(p, &base);
        tt_push(p->arena, node->items, declared);
    } while (tt_c_accept(p, TOKEN_COMMA));
    tt_c_expect(p, TOKEN_SEMICOLON, "after a declaration");
    return tt_c_end_node(p, node);
}

Node *tt_c_parse_block(Parser *p)
{
    Node *node = tt_c_node(p, NODE_BLOCK, &p->next->loc);
    const Token *open = tt_c_expect(p, TOKEN_OPEN_BRACE, "before statements");
    while (p->next->kind != TOKEN_CLOSE_BRACE) {
        if (p->next->kind == TOKEN_END)
            tt_c_fail_at(p, &open->loc, NULL, "%s", "this `{` has no `}`");
        Node *statement = parse_statement(p);
        tt_push(p->arena, node->items, statement);
    }
    p->next++;
    return tt_c_end_node(p, node);
}

static Node *parse_condition(Parser *p, const char *where)
{
    tt_c_expect(p, TOKEN_OPEN, where);
    Node *condition = tt_c_parse_expression(p);
    tt_c_expect(p, TOKEN_CLOSE, "after the condition");
    return condition;
}

static Node *parse_if(Parser *p)
{
    Node *node = tt_c_node(p, NODE_IF, &p->next++->loc);
    node->first = parse_condition(p, "after `if`");
    node->second = parse_statement(p);
    if (tt_c_accept(p, TOKEN_ELSE))
        node->third = parse_statement(p);
    return tt_c_end_node(p, node);
}

static Node *parse_for(Parser *p)
{
    Node *node = tt_c_node(p, NODE_FOR, &p->next++->loc);
    tt_c_expect(p, TOKEN_OPEN, "after `for`");
    if (tt_c_starts_type(p->next)) {
        node->first = parse_declarations(p);
    } else {
        if (p->next->kind != TOKEN_SEMICOLON) {
            node->first = tt_c_node(p, NODE_EVALUATE, &p->next->loc);
            node->first->first = tt_c_parse_expression(p);
            tt_c_end_node(p, node->first);
        }
        tt_c_expect(p, TOKEN_SEMICOLON, "after the first part of `for`");
    }
    if (p->next->kind != TOKEN_SEMICOLON)
        node->second = tt_c_parse_expression(p);
    tt_c_expect(p, TOKEN_SEMICOLON, "after the condition of `for`");
    if (p->next->kind != TOKEN_CLOSE)
        node->third = tt_c_parse_expression(p);
    tt_c_expect(p, TOKEN_CLOSE, "after the last part of `for`");
    node->body = parse_statement(p);
    return tt_c_end_node(p, node);
}

static Node *parse_while(Parser *p)
{
    Node *node = tt_c_node(p, NODE_WHILE, &p->next++->loc);
    node->first = parse_condition(p, "after `while`");
    node->body = parse_statement(p);
    return tt_c_end_node(p, node);
}

static Node *parse_return(Parser *p)
{
    Node *node = tt_c_node(p, NODE_RETURN, &p->next++->loc);
    if (p->next->kind != TOKEN_SEMICOLON)
        node->first = tt_c_parse_expression(p);
    tt_c_expect(p, TOKEN_SEMICOLON, "after `return`");
    return tt_c_end_node(p, node);
}

static Node *parse_jump(Parser *p, NodeKind kind)
{
    Node *node = tt_c_node(p, kind, &p->next++->loc);
    tt_c_expect(p, TOKEN_SEMICOLON, kind == NODE_BREAK ? "after `break`" : "after `continue`");
    return tt_c_end_node(p, node);
}

static Node *parse_predicate(Parser *p)
{
    Node *node = tt_c_node(p, NODE_PREDICATE, &p->next++->loc);
    node->first = tt_c_parse_predicate(p);
    node->body = parse_statement(p);
    return tt_c_end_node(p, node);
}

static Node *parse_evaluation(Parser *p)
{
    Node *node = tt_c_node(p, NODE_EVALUATE, &p->next->loc);
    node->first = tt_c_parse_expression(p);
    tt_c_expect(p, TOKEN_SEMICOLON, "after a statement");
    return tt_c_end_node(p, node);
}

static Node *parse_one_statement(Parser *p)
{
    if (tt_c_starts_type(p->next))
        return parse_declarations(p);
    switch (p->next->kind) {
    case TOKEN_OPEN_BRACE:
        return tt_c_parse_block(p);
    case TOKEN_IF:
        return parse_if(p);
    case TOKEN_FOR:
        return parse_for(p);
    case TOKEN_WHILE:
        return parse_while(p);
    case TOKEN_RETURN:
        return parse_return(p);
    case TOKEN_BREAK:
        return parse_jump(p, NODE_BREAK);
    case TOKEN_CONTINUE:
        return parse_jump(p, NODE_CONTINUE);
    case TOKEN_AT:
        return parse_predicate(p);
    case TOKEN_SEMICOLON: {
        Node *nothing = tt_c_node(p, NODE_BLOCK, &p->next++->loc);
        return tt_c_end_node(p, nothing);
    }
    default:
        return parse_evaluation(p);
    }
}

static Node *parse_statement(Parser *p)
{
    tt_c_enter(p);
    Node *node = parse_one_statement(p);
    tt_c_leave(p);
    return node;
}
