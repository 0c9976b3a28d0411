/* Expressions, by precedence climbing. */
#include "triton_c/syntax.h"

/* ---- operators --------------------------------------------------------------------------------------------------------- */

typedef struct BinaryRow {
    TokenKind token;
    int precedence; /* the higher binds the tighter */
    Operator op;
} BinaryRow;

static const BinaryRow binaries[] = {
    {TOKEN_LOGICAL_OR, 1, OPERATOR_LOGICAL_OR},
    {TOKEN_LOGICAL_AND, 2, OPERATOR_LOGICAL_AND},
    {TOKEN_OR, 3, OPERATOR_OR},
    {TOKEN_XOR, 4, OPERATOR_XOR},
    {TOKEN_AND, 5, OPERATOR_AND},
    {TOKEN_EQUAL, 6, OPERATOR_EQ},
    {TOKEN_NOT_EQUAL, 6, OPERATOR_NE},
    {TOKEN_LESS, 7, OPERATOR_LT},
    {TOKEN_LESS_EQUAL, 7, OPERATOR_LE},
    {TOKEN_GREATER, 7, OPERATOR_GT},
    {TOKEN_GREATER_EQUAL, 7, OPERATOR_GE},
    {TOKEN_SHIFT_LEFT, 8, OPERATOR_LSHIFT},
    {TOKEN_SHIFT_RIGHT, 8, OPERATOR_RSHIFT},
    {TOKEN_ADD, 9, OPERATOR_ADD},
    {TOKEN_SUB, 9, OPERATOR_SUB},
    {TOKEN_MUL, 10, OPERATOR_MUL},
    {TOKEN_DIV, 10, OPERATOR_DIV},
    {TOKEN_MOD, 10, OPERATOR_MOD},
};

static const struct {
    TokenKind token;
    Operator op;
} assignments[] = {
    {TOKEN_ADD_ASSIGN, OPERATOR_ADD},
    {TOKEN_SUB_ASSIGN, OPERATOR_SUB},
    {TOKEN_MUL_ASSIGN, OPERATOR_MUL},
    {TOKEN_DIV_ASSIGN, OPERATOR_DIV},
    {TOKEN_MOD_ASSIGN, OPERATOR_MOD},
    {TOKEN_AND_ASSIGN, OPERATOR_AND},
    {TOKEN_OR_ASSIGN, OPERATOR_OR},
    {TOKEN_XOR_ASSIGN, OPERATOR_XOR},
    {TOKEN_SHIFT_LEFT_ASSIGN, OPERATOR_LSHIFT},
    {TOKEN_SHIFT_RIGHT_ASSIGN, OPERATOR_RSHIFT},
};

static const struct {
    TokenKind token;
    Operator op;
} unaries[] = {
    {TOKEN_SUB, OPERATOR_NEG},
    {TOKEN_ADD, OPERATOR_POS},
    {TOKEN_INVERT, OPERATOR_INVERT},
    {TOKEN_NOT, OPERATOR_NOT},
};

static const BinaryRow *binary_row(TokenKind kind)
{
    for (size_t i = 0; i < TT_COUNT(binaries); i++)
        if (binaries[i].token == kind)
            return &binaries[i];
    return NULL;
}

/* ---- what stands alone ------------------------------------------------------------------------------------------------- */

static Node *parse_unary(Parser *p);

static void parse_items(Parser *p, Nodes *items)
{
    do {
        Node *item;
        const Token *token = p->next;
        if (tt_c_accept(p, TOKEN_COLON))
            item = tt_c_end_node(p, tt_c_node(p, NODE_WHOLE, &token->loc));
        else if (tt_c_accept(p, TOKEN_NEWAXIS))
            item = tt_c_end_node(p, tt_c_node(p, NODE_NEWAXIS, &token->loc));
        else
            item = tt_c_parse_assignment(p);
        tt_push(p->arena, *items, item);
    } while (tt_c_accept(p, TOKEN_COMMA));
    tt_c_expect(p, TOKEN_CLOSE_BRACKET, "after an index");
}

static void parse_arguments(Parser *p, Nodes *arguments)
{
    if (tt_c_accept(p, TOKEN_CLOSE))
        return;
    do {
        Node *argument = tt_c_parse_assignment(p);
        tt_push(p->arena, *arguments, argument);
    } while (tt_c_accept(p, TOKEN_COMMA));
    tt_c_expect(p, TOKEN_CLOSE, "after arguments");
}

static Node *parse_primary(Parser *p)
{
    const Token *token = p->next;
    Node *node = NULL;
    switch (token->kind) {
    case TOKEN_NAME:
        node = tt_c_node(p, NODE_NAME, &token->loc);
        node->name = token->text;
        break;
    case TOKEN_INTEGER:
    case TOKEN_REAL:
        node = tt_c_node(p, token->kind == TOKEN_INTEGER ? NODE_INT : NODE_FLOAT, &token->loc);
        node->dtype = token->dtype;
        if (token->kind == TOKEN_INTEGER)
            node->integer = token->integer;
        else
            node->real = token->real;
        break;
    case TOKEN_TRUE:
    case TOKEN_FALSE:
        node = tt_c_node(p, NODE_INT, &token->loc);
        node->dtype = &tt_int1;
        node->integer = token->kind == TOKEN_TRUE;
        break;
    case TOKEN_STRING:
        node = tt_c_node(p, NODE_STRING, &token->loc);
        node->name = token->text;
        break;
    case TOKEN_OPEN:
        p->next++;
        tt_c_enter(p);
        node = tt_c_parse_expression(p);
        tt_c_leave(p);
        tt_c_expect(p, TOKEN_CLOSE, "to end `(`");
        return node;
    default:
        tt_c_unexpected(p, "an expression");
    }
    p->next++;
    return tt_c_end_node(p, node);
}

/* f[TM](0) is a call: brackets behind the name of a function. */
static Node *parse_call(Parser *p, Node *callee, Nodes items, bool has_items)
{
    const Token *open = p->next;
    if (callee->kind != NODE_NAME)
        tt_error_with_remedy(&open->loc, "functions are called by their names", "only a name can be called");
    p->next++;
    Node *node = tt_c_node(p, NODE_CALL, &callee->loc);
    node->name = callee->name;
    node->items = items;
    node->has_items = has_items;
    parse_arguments(p, &node->arguments);
    return tt_c_end_node(p, node);
}

static Node *parse_step(Parser *p, Node *target, const Loc *from, bool is_postfix)
{
    Node *node = tt_c_node(p, NODE_STEP, from);
    node->first = target;
    node->is_postfix = is_postfix;
    return node;
}

/* Of a predicate, what changes something is left out: `@p ++i;` steps i. */
static Node *parse_postfix(Parser *p, bool is_predicate)
{
    Node *node = parse_primary(p);
    for (;;) {
        const Token *token = p->next;
        if (token->kind == TOKEN_OPEN) {
            node = parse_call(p, node, (Nodes){0}, false);
        } else if (tt_c_accept(p, TOKEN_OPEN_BRACKET)) {
            Nodes items = {0};
            tt_c_enter(p);
            parse_items(p, &items);
            tt_c_leave(p);
            if (node->kind == NODE_NAME && p->next->kind == TOKEN_OPEN) {
                node = parse_call(p, node, items, true);
                continue;
            }
            Node *index = tt_c_node(p, NODE_INDEX, &node->loc);
            index->first = node;
            index->items = items;
            node = tt_c_end_node(p, index);
        } else if (!is_predicate && (tt_c_accept(p, TOKEN_INCREMENT) || tt_c_accept(p, TOKEN_DECREMENT))) {
            node = parse_step(p, node, &node->loc, true);
            node->op = token->kind == TOKEN_INCREMENT ? OPERATOR_ADD : OPERATOR_SUB;
            tt_c_end_node(p, node);
        } else if (token->kind == TOKEN_DOT || token->kind == TOKEN_ARROW) {
            tt_error_with_remedy(&token->loc, "there are scalars, pointers and tiles only",
                                 "nothing in Triton-C has members");
        } else {
            return node;
        }
    }
}

static Node *parse_cast(Parser *p, const Token *open)
{
    Declaration base = {0};
    bool is_tunable, is_kernel;
    tt_c_parse_type(p, &base, &is_tunable, &is_kernel);
    Node *node = tt_c_node(p, NODE_CAST, &open->loc);
    node->declaration = tt_c_parse_declarator(p, &base, true);
    tt_c_expect(p, TOKEN_CLOSE, "after the type of a cast");
    node->first = parse_unary(p);
    return tt_c_end_node(p, node);
}

static Node *parse_one_unary(Parser *p)
{
    const Token *token = p->next;
    for (size_t i = 0; i < TT_COUNT(unaries); i++)
        if (tt_c_accept(p, unaries[i].token)) {
            Node *node = tt_c_node(p, NODE_UNARY, &token->loc);
            node->op = unaries[i].op;
            node->first = parse_unary(p);
            return tt_c_end_node(p, node);
        }
    if (tt_c_accept(p, TOKEN_MUL)) {
        Node *node = tt_c_node(p, NODE_LOAD, &token->loc);
        node->first = parse_unary(p);
        return tt_c_end_node(p, node);
    }
    if (tt_c_accept(p, TOKEN_INCREMENT) || tt_c_accept(p, TOKEN_DECREMENT)) {
        Node *node = parse_step(p, parse_unary(p), &token->loc, false);
        node->op = token->kind == TOKEN_INCREMENT ? OPERATOR_ADD : OPERATOR_SUB;
        return tt_c_end_node(p, node);
    }
    if (token->kind == TOKEN_AND)
        tt_error_with_remedy(&token->loc, "pointers come in as parameters; move them with + and -",
                             "variables have no address");
    if (token->kind == TOKEN_OPEN && tt_c_starts_type(token + 1)) {
        p->next++;
        return parse_cast(p, token);
    }
    return parse_postfix(p, false);
}

static Node *parse_unary(Parser *p)
{
    tt_c_enter(p);
    Node *node = parse_one_unary(p);
    tt_c_leave(p);
    return node;
}

/* ---- what has operators in between --------------------------------------------------------------------------------------- */

static Node *parse_binary(Parser *p, int least)
{
    Node *left = parse_unary(p);
    for (;;) {
        const BinaryRow *row = binary_row(p->next->kind);
        if (!row || row->precedence < least)
            return left;
        p->next++;
        Node *node = tt_c_node(p, NODE_BINARY, &left->loc);
        node->op = row->op;
        node->first = left;
        node->second = parse_binary(p, row->precedence + 1);
        left = tt_c_end_node(p, node);
    }
}

static Node *parse_conditional(Parser *p)
{
    Node *condition = parse_binary(p, 1);
    if (p->next->kind == TOKEN_ELLIPSIS) {
        p->next++;
        Node *range = tt_c_node(p, NODE_RANGE, &condition->loc);
        range->first = condition;
        range->second = parse_binary(p, 1);
        return tt_c_end_node(p, range);
    }
    if (!tt_c_accept(p, TOKEN_QUESTION))
        return condition;
    Node *node = tt_c_node(p, NODE_CONDITIONAL, &condition->loc);
    node->first = condition;
    tt_c_enter(p);
    node->second = tt_c_parse_expression(p);
    tt_c_expect(p, TOKEN_COLON, "between the two sides of `?`");
    node->third = parse_conditional(p);
    tt_c_leave(p);
    return tt_c_end_node(p, node);
}

/* `x = 1` without `;` and `*p = 2` in the next line make a product that is assigned to. */
static void check_line_end(const Node *target)
{
    if (target->kind != NODE_BINARY || target->op != OPERATOR_MUL ||
        target->second->loc.line == target->first->loc.end_line)
        return;
    tt_error(&target->first->loc, "`;` is missing at the end of this line");
}

Node *tt_c_parse_assignment(Parser *p)
{
    Node *target = parse_conditional(p);
    bool has_op = false;
    Operator op = OPERATOR_ADD;
    for (size_t i = 0; i < TT_COUNT(assignments) && !has_op; i++)
        if (p->next->kind == assignments[i].token) {
            has_op = true;
            op = assignments[i].op;
        }
    if (!has_op && p->next->kind != TOKEN_ASSIGN)
        return target;
    check_line_end(target);
    p->next++;
    tt_c_enter(p);
    Node *node = tt_c_node(p, NODE_ASSIGN, &target->loc);
    node->has_op = has_op;
    node->op = op;
    node->first = target;
    node->second = tt_c_parse_assignment(p);
    tt_c_leave(p);
    return tt_c_end_node(p, node);
}

Node *tt_c_parse_expression(Parser *p)
{
    Node *left = tt_c_parse_assignment(p);
    while (tt_c_accept(p, TOKEN_COMMA)) {
        Node *node = tt_c_node(p, NODE_COMMA, &left->loc);
        node->first = left;
        node->second = tt_c_parse_assignment(p);
        left = tt_c_end_node(p, node);
    }
    return left;
}

/* The predicate of a statement ends where the statement begins, so that `@p *q = x;` is no product. */
Node *tt_c_parse_predicate(Parser *p)
{
    const Token *token = p->next;
    if (tt_c_accept(p, TOKEN_NOT)) {
        Node *node = tt_c_node(p, NODE_UNARY, &token->loc);
        node->op = OPERATOR_NOT;
        tt_c_enter(p);
        node->first = tt_c_parse_predicate(p);
        tt_c_leave(p);
        return tt_c_end_node(p, node);
    }
    return parse_postfix(p, true);
}
