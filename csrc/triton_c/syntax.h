/* syntax.h: tokens, the syntax tree, and the parser that makes it. Internal to triton_c/. */
#pragma once
#include "language/language.h"
#include "triton_c/triton_c.h"

/* ---- lexer.c ------------------------------------------------------------------------------------------------------- */

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_TYPE, /* a type that is one word */
    TOKEN_INTEGER,
    TOKEN_REAL,
    TOKEN_STRING,
#define KEYWORD(name, text) TOKEN_##name,
#define TYPE_NAME(text, dtype)
#define PUNCTUATION(name, text) TOKEN_##name,
#include "triton_c/tokens.def"
    TOKEN_KINDS,
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Loc loc;
    const char *text;   /* as it stands in the program; of a STRING what it means */
    const Dtype *dtype; /* of a TYPE, INT, FLOAT; NULL of a FLOAT without suffix */
    union {
        uint64_t integer;
        double real;
    };
} Token;

/* All of a program, with an END. Raises. */
const Token *tt_c_lex(Arena *arena, const CSource *source);
const char *tt_c_token_text(TokenKind kind); /* "`+=`", "a name" */

/* ---- the tree ---------------------------------------------------------------------------------------------------------- */

typedef enum NodeKind {
    /* expressions */
    NODE_INT,
    NODE_FLOAT,
    NODE_STRING,
    NODE_NAME,
    NODE_UNARY,       /* op: NEG POS INVERT NOT; first */
    NODE_BINARY,      /* op, first, second; of `&&` and `||` too */
    NODE_CONDITIONAL, /* first ? second : third */
    NODE_ASSIGN,      /* first = second, or first op= second */
    NODE_STEP,        /* first is `op`ped by 1; is_postfix */
    NODE_LOAD,        /* *first */
    NODE_INDEX,       /* first[items] */
    NODE_CALL,        /* name[items](arguments) */
    NODE_CAST,        /* (declared type) first */
    NODE_RANGE,       /* first ... second */
    NODE_COMMA,       /* first, second */
    NODE_WHOLE,       /* `:` in an index */
    NODE_NEWAXIS,
    /* statements */
    NODE_BLOCK,    /* items */
    NODE_DECLARE,  /* declaration, first: its value or NULL */
    NODE_EVALUATE, /* first */
    NODE_IF,       /* if (first) second else third */
    NODE_FOR,      /* for (first; second; third) body; each may be NULL */
    NODE_WHILE,    /* while (first) body */
    NODE_RETURN,   /* first or NULL */
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_PREDICATE, /* @first body */
} NodeKind;

typedef struct Node Node;
typedef struct Nodes {
    Node **data;
    int count, capacity;
} Nodes;

/* A name with its type; in a cast without a name. */
typedef struct Declaration {
    const char *name;
    const Dtype *dtype;
    Nodes extents; /* none: a scalar, or whatever shape a function is given */
    bool is_const; /* the name, not what it points to */
    Loc loc;
} Declaration;

struct Node {
    NodeKind kind;
    Loc loc;
    Operator op;
    bool has_op, is_postfix; /* ASSIGN with an operator; STEP */
    const char *name;        /* NAME, CALL, STRING */
    const Dtype *dtype;      /* INT; FLOAT: NULL without suffix */
    union {
        uint64_t integer;
        double real;
    };
    Node *first, *second, *third, *body;
    Nodes items, arguments;
    bool has_items; /* CALL: f[...]() */
    int depth;      /* of the tree below */
    const Declaration *declaration;
};

typedef struct CFunction {
    const char *name;
    bool is_kernel;
    const Dtype *result;
    const Declaration *parameters;
    int parameter_count;
    Node *body;
    Loc loc; /* of the name */
} CFunction;

typedef struct CConstant {
    const Declaration *declaration;
    Nodes values; /* one; of a tunable any number */
    bool is_tunable;
    bool is_array; /* __constant__ T *name = alloc_const T[n] */
} CConstant;

typedef struct CProgram {
    TT_VECTOR(CFunction *) functions;
    TT_VECTOR(CConstant *) constants;
} CProgram;

/* ---- parse_file.c, parse.c, parse_expression.c --------------------------------------------------------------------------------------- */

const CProgram *tt_c_parse(Arena *arena, const CSource *source, Map *pointers);

typedef struct Parser {
    Arena *arena;
    Map *pointers;
    const Token *next;
    int depth; /* of what is being parsed */
    StackUse stack;
} Parser;

Node *tt_c_parse_expression(Parser *p); /* with commas */
Node *tt_c_parse_assignment(Parser *p); /* without */
Node *tt_c_parse_predicate(Parser *p);  /* what stands behind `@` */
/* The type at the beginning of a declaration; `declaration` gets dtype and is_const. False where there is none. */
bool tt_c_parse_type(Parser *p, Declaration *declaration, bool *is_tunable, bool *is_kernel);
/* Pointers, name and extents of one declared name of the type `base`. The name may be missing in a cast. */
Declaration *tt_c_parse_declarator(Parser *p, const Declaration *base, bool is_cast);
bool tt_c_starts_type(const Token *token);

Node *tt_c_node(Parser *p, NodeKind kind, const Loc *from);
Node *tt_c_end_node(Parser *p, Node *node); /* the node's place ends with the last token that was taken */
bool tt_c_accept(Parser *p, TokenKind kind);
const Token *tt_c_expect(Parser *p, TokenKind kind, const char *where);
void tt_c_enter(Parser *p); /* one level deeper: an error before the stack ends */
static inline void tt_c_leave(Parser *p) { p->depth--; }
_Noreturn void tt_c_unexpected(Parser *p, const char *wanted);
/* `format` has one %s. */
_Noreturn void tt_c_fail_at(Parser *p, const Loc *loc, const char *remedy, const char *format,
                            const char *what);
Node *tt_c_parse_block(Parser *p);
