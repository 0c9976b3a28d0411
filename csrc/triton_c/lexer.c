/* Text to tokens. */
#include "triton_c/syntax.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

typedef struct Lexer {
    Arena *arena;
    const CSource *source;
    const char *at, *end, *line_start;
    int line;
    TT_VECTOR(Token) tokens;
} Lexer;

static const struct {
    const char *text;
    TokenKind kind;
} words[] = {
#define KEYWORD(name, text) {text, TOKEN_##name},
#define TYPE_NAME(text, dtype)
#define PUNCTUATION(name, text)
#include "triton_c/tokens.def"
};

static const struct {
    const char *text;
    const Dtype *dtype;
} types[] = {
#define KEYWORD(name, text)
#define TYPE_NAME(text, dtype) {text, &dtype},
#define PUNCTUATION(name, text)
#include "triton_c/tokens.def"
};

static const struct {
    const char *text;
    TokenKind kind;
} punctuation[] = {
#define KEYWORD(name, text)
#define TYPE_NAME(text, dtype)
#define PUNCTUATION(name, text) {text, TOKEN_##name},
#include "triton_c/tokens.def"
};

const char *tt_c_token_text(TokenKind kind)
{
    static const char *const texts[TOKEN_KINDS] = {
        [TOKEN_END] = "the end of the program", [TOKEN_NAME] = "a name",   [TOKEN_TYPE] = "a type",
        [TOKEN_INTEGER] = "a number",           [TOKEN_REAL] = "a number", [TOKEN_STRING] = "a string",
#define KEYWORD(name, text) [TOKEN_##name] = "`" text "`",
#define TYPE_NAME(text, dtype)
#define PUNCTUATION(name, text) [TOKEN_##name] = "`" text "`",
#include "triton_c/tokens.def"
    };
    return texts[kind];
}

/* ---- places --------------------------------------------------------------------------------------------------------- */

static Loc loc_from(const Lexer *l, const char *start)
{
    return (Loc){.file = l->source->file,
                 .line = l->line,
                 .column = (int)(start - l->line_start),
                 .end_line = l->line,
                 .end_column = (int)(l->at - l->line_start)};
}

static _Noreturn void fail(Lexer *l, const char *start, const char *remedy, const char *message)
{
    Loc loc = loc_from(l, start);
    tt_error_with_remedy(tt_arena_copy(l->arena, &loc, sizeof loc), remedy, "%s", message);
}

static int peek(const Lexer *l, int ahead)
{
    return l->end - l->at > ahead ? (unsigned char)l->at[ahead] : 0;
}

static void next_line(Lexer *l)
{
    l->line++;
    l->line_start = l->at;
}

/* ---- what is no token ------------------------------------------------------------------------------------------------ */

static void skip_comment(Lexer *l)
{
    const char *start = l->at, *line_start = l->line_start;
    int line = l->line;
    for (l->at += 2; l->at < l->end; l->at++) {
        if (l->at[0] == '*' && peek(l, 1) == '/') {
            l->at += 2;
            return;
        }
        if (*l->at == '\n') {
            l->at++;
            next_line(l);
            l->at--;
        }
    }
    l->line = line;
    l->line_start = line_start;
    l->at = start + 2;
    fail(l, start, "end it with `*/`", "this comment has no end");
}

static void skip_blanks(Lexer *l)
{
    while (l->at < l->end) {
        int c = peek(l, 0);
        if (c == '\n') {
            l->at++;
            next_line(l);
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            l->at++;
        } else if (c == '/' && peek(l, 1) == '/') {
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        } else if (c == '/' && peek(l, 1) == '*') {
            skip_comment(l);
        } else {
            return;
        }
    }
}

/* ---- tokens --------------------------------------------------------------------------------------------------------- */

static bool is_word(int c) { return c == '_' || (c < 128 && isalnum(c)); }

static void take_word(Lexer *l, Token *token)
{
    while (is_word(peek(l, 0)))
        l->at++;
    token->kind = TOKEN_NAME;
    for (size_t i = 0; i < TT_COUNT(words); i++)
        if (!strcmp(token->text, words[i].text))
            token->kind = words[i].kind;
    for (size_t i = 0; i < TT_COUNT(types); i++)
        if (!strcmp(token->text, types[i].text)) {
            token->kind = TOKEN_TYPE;
            token->dtype = types[i].dtype;
        }
}

/* The first type that holds the constant, as in C: decimal ones are unsigned only where a suffix says so. */
static const Dtype *int_dtype(uint64_t value, bool is_unsigned, bool is_long, bool is_decimal)
{
    if (value <= INT32_MAX && !is_long)
        return is_unsigned ? &tt_uint32 : &tt_int32;
    if (value <= UINT32_MAX && !is_long && (is_unsigned || !is_decimal))
        return &tt_uint32;
    return is_unsigned || value > INT64_MAX ? &tt_uint64 : &tt_int64;
}

static void take_int_suffix(Lexer *l, Token *token, const char *start, bool is_decimal)
{
    bool is_unsigned = false, is_long = false;
    for (; is_word(peek(l, 0)); l->at++) {
        int c = tolower(peek(l, 0));
        if (c == 'u' && !is_unsigned)
            is_unsigned = true;
        else if (c == 'l')
            is_long = true;
        else {
            while (is_word(peek(l, 0)))
                l->at++;
            fail(l, start, "a number may end with u, l or ul; a name cannot begin with a digit",
                 "this is no number");
        }
    }
    if (is_decimal && !is_unsigned && token->integer > INT64_MAX)
        fail(l, start, "write it with the suffix u, or in hexadecimal",
             "this number does not fit into 64 bits");
    token->dtype = int_dtype(token->integer, is_unsigned, is_long, is_decimal);
}

/* Suffixes: f for float, d or l for double, h for half; none for the type of what it meets. */
static void take_float_suffix(Lexer *l, Token *token, const char *start)
{
    int c = tolower(peek(l, 0));
    token->dtype = c == 'f' ? &tt_fp32 : c == 'd' || c == 'l' ? &tt_fp64 : c == 'h' ? &tt_fp16 : NULL;
    l->at += token->dtype != NULL;
    if (!is_word(peek(l, 0)))
        return;
    while (is_word(peek(l, 0)))
        l->at++;
    fail(l, start, "a number with a point may end with f, h, d or l", "this is no number");
}

static const char *copy_from(const Lexer *l, const char *start)
{
    return tt_arena_strndup(l->arena, start, (size_t)(l->at - start));
}

static void take_number(Lexer *l, Token *token)
{
    const char *start = l->at;
    int base = 10;
    if (*l->at == '0' && tolower(peek(l, 1)) == 'x') {
        base = 16;
        for (l->at += 2; isxdigit(peek(l, 0));)
            l->at++;
    } else {
        while (isdigit(peek(l, 0)))
            l->at++;
    }
    bool is_float = base == 10 && peek(l, 0) == '.' && peek(l, 1) != '.';
    if (is_float)
        for (l->at++; isdigit(peek(l, 0));)
            l->at++;
    int sign = peek(l, 1) == '+' || peek(l, 1) == '-';
    if (base == 10 && tolower(peek(l, 0)) == 'e' && isdigit(peek(l, 1 + sign))) {
        is_float = true;
        for (l->at += 2 + sign; isdigit(peek(l, 0));)
            l->at++;
    }
    const char *digits = copy_from(l, start);
    errno = 0;
    if (is_float || tolower(peek(l, 0)) == 'f' || tolower(peek(l, 0)) == 'h' || tolower(peek(l, 0)) == 'd') {
        token->kind = TOKEN_REAL;
        token->real = strtod(digits, NULL);
        take_float_suffix(l, token, start);
        return;
    }
    token->kind = TOKEN_INTEGER;
    bool is_octal = base == 10 && digits[0] == '0';
    char *rest;
    token->integer = strtoull(digits, &rest, is_octal ? 8 : base);
    if (*rest || (base == 16 && !digits[2]))
        fail(l, start, is_octal ? "a number that begins with 0 is octal" : NULL, "this is no number");
    if (errno == ERANGE)
        fail(l, start, NULL, "this number does not fit into 64 bits");
    take_int_suffix(l, token, start, base == 10 && !is_octal);
}

static void take_string(Lexer *l, Token *token)
{
    const char *start = l->at++;
    Text text = {.arena = l->arena};
    tt_text_add(&text, "%s", "");
    for (;; l->at++) {
        int c = peek(l, 0);
        if (!c || c == '\n')
            fail(l, start, "end it with `\"` on the same line", "this string has no end");
        if (c == '"')
            break;
        if (c == '\\') {
            static const char escapes[] = "n\nt\t\\\\\"\"";
            const char *found = peek(l, 1) ? strchr(escapes, peek(l, 1)) : NULL;
            if (!found || (found - escapes) % 2)
                fail(l, start, "there are \\n, \\t, \\\\ and \\\"",
                     "this string has an escape that is not known");
            l->at++;
            tt_text_add_n(&text, found + 1, 1);
            continue;
        }
        tt_text_add_n(&text, l->at, 1);
    }
    l->at++;
    token->kind = TOKEN_STRING;
    token->text = text.data;
}

static void take_punctuation(Lexer *l, Token *token)
{
    const char *start = l->at;
    for (size_t i = 0; i < TT_COUNT(punctuation); i++) {
        size_t length = strlen(punctuation[i].text);
        if ((size_t)(l->end - l->at) >= length && !memcmp(l->at, punctuation[i].text, length)) {
            l->at += length;
            token->kind = punctuation[i].kind;
            token->text = punctuation[i].text;
            return;
        }
    }
    int c = peek(l, 0);
    l->at++;
    while (l->at < l->end && (*l->at & 0xc0) == 0x80)
        l->at++; /* all of a character */
    if (c == '#')
        fail(l, start, "write `const int N = 64;` for a constant, and `tunable` for one to choose among",
             "there is no preprocessor");
    fail(l, start, NULL,
         c == '\'' ? "there are no characters, only numbers" : "this is no part of the language");
}

static Token next_token(Lexer *l)
{
    Token token = {.kind = TOKEN_END};
    skip_blanks(l);
    const char *start = l->at;
    int c = peek(l, 0);
    if (l->at == l->end) {
        token.loc = loc_from(l, start);
        return token;
    }
    if (isdigit(c) || (c == '.' && isdigit(peek(l, 1)))) {
        take_number(l, &token);
    } else if (is_word(c)) {
        while (is_word(peek(l, 0)))
            l->at++;
        token.text = copy_from(l, start);
        l->at = start;
        take_word(l, &token);
    } else if (c == '"') {
        take_string(l, &token);
    } else {
        take_punctuation(l, &token);
    }
    token.loc = loc_from(l, start);
    if (!token.text)
        token.text = copy_from(l, start);
    return token;
}

const Token *tt_c_lex(Arena *arena, const CSource *source)
{
    Lexer l = {.arena = arena,
               .source = source,
               .at = source->text,
               .end = source->text + source->length,
               .line_start = source->text,
               .line = 1};
    Token token;
    do {
        token = next_token(&l);
        tt_push(arena, l.tokens, token);
    } while (token.kind != TOKEN_END);
    return l.tokens.data;
}
