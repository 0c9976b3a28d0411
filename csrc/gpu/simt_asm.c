/* Inline assembly: elements to registers and back.
 *
 * One run of the text takes `pack` elements of each operand and gives as many of each result. Elements narrower than 32
 * bits lie together in registers, the first in the lowest bits; wider ones have a register each, of whatever width. The
 * letter of a constraint says what a register is: h 16 bits, r 32, l 64, f and d floats. */
#include "gpu/simt.h"
#include <stdlib.h>

enum { MOST_REGISTERS = 64 };

typedef struct AsmCall {
    Simt *s;
    const Op *op;
    int pack;
    char letters[MOST_REGISTERS]; /* of the results' registers, then the operands' */
    int result_count, operand_count;
} AsmCall;

/* ---- constraints ------------------------------------------------------------------------------------------------------------------ */

static _Noreturn void bad_constraints(const AsmCall *c, const char *why)
{
    tt_error(c->op->loc, "the constraints of the inline assembly, \"%s\": %s",
             tt_string_attr(c->op, ATTR_constraints, ""), why);
}

static void add_register(AsmCall *c, const char *text, bool is_result)
{
    if (c->result_count + c->operand_count == MOST_REGISTERS)
        bad_constraints(c, "more than 64 registers");
    if (is_result && c->operand_count)
        bad_constraints(c, "a result after an operand");
    char letter = *text;
    if (letter >= '0' && letter <= '9') { /* the same register as that result */
        int number = atoi(text);
        if (is_result || number >= c->result_count)
            bad_constraints(c, "there is no such result");
        letter = c->letters[number];
    }
    if (!letter || !strchr("hrlfd", letter))
        bad_constraints(c, "registers are h, r, l, f or d");
    c->letters[c->result_count + c->operand_count] = letter;
    *(is_result ? &c->result_count : &c->operand_count) += 1;
}

static void read_constraints(AsmCall *c)
{
    const char *text = tt_string_attr(c->op, ATTR_constraints, "");
    while (*text) {
        text += strspn(text, " \t\n");
        bool is_result = *text == '=', is_clobber = *text == '~';
        text += strspn(text, "=&");
        if (*text && !is_clobber)
            add_register(c, text, is_result);
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

/* LLVM takes no blanks. */
static const char *without_blanks(AsmCall *c)
{
    const char *from = tt_string_attr(c->op, ATTR_constraints, "");
    char *text = TT_NEW_ARRAY(c->s->arena, char, (int)strlen(from) + 1), *end = text;
    for (; *from; from++)
        if (!strchr(" \t\n", *from))
            *end++ = *from;
    *end = 0;
    return text;
}

static int letter_bits(char letter) { return letter == 'h' ? 16 : letter == 'r' || letter == 'f' ? 32 : 64; }

static LLVMTypeRef register_type(const AsmCall *c, char letter)
{
    Simt *s = c->s;
    return letter == 'f' ? s->f32 : letter == 'd' ? s->f64 : simt_int_type(s, letter_bits(letter));
}

/* ---- elements ------------------------------------------------------------------------------------------------------------------------ */

/* Elements in one register, and their bits. */
typedef struct Packing {
    int elements, bits;
} Packing;

static Packing packing_of(const AsmCall *c, const Value *value)
{
    int bits = tt_byte_width(tt_element(value->type)) * 8;
    return (Packing){bits >= 32 ? 1 : TT_MIN(c->pack, 32 / bits), bits};
}

static LLVMTypeRef bits_of_register(const AsmCall *c, Packing packing, char letter)
{
    int bits = letter_bits(letter);
    if (packing.elements > 1 && packing.elements * packing.bits > bits)
        bad_constraints(c, "the elements of a register are wider than it");
    return simt_int_type(c->s, bits);
}

/* Of the bits of an element that is wider than its register the lowest; above those of a narrower one zeros. */
static LLVMValueRef resized(const AsmCall *c, LLVMValueRef bits, LLVMTypeRef type)
{
    return LLVMBuildIntCast2(c->s->b, bits, type, /*is_signed=*/0, "");
}

static LLVMValueRef to_register(AsmCall *c, LLVMValueRef const *elements, Packing packing, char letter)
{
    Simt *s = c->s;
    LLVMTypeRef type = bits_of_register(c, packing, letter);
    LLVMValueRef word = LLVMConstNull(type);
    for (int i = 0; i < packing.elements; i++) {
        LLVMValueRef part = resized(c, simt_to_bits(s, elements[i]), type);
        LLVMValueRef shift = simt_int(type, i * packing.bits);
        word = i ? LLVMBuildOr(s->b, word, LLVMBuildShl(s->b, part, shift, ""), "") : part;
    }
    return simt_from_bits(s, word, register_type(c, letter));
}

static void from_register(AsmCall *c, LLVMValueRef value, char letter, Packing packing, LLVMTypeRef type,
                          LLVMValueRef *elements)
{
    Simt *s = c->s;
    LLVMTypeRef word_type = bits_of_register(c, packing, letter);
    LLVMValueRef word = simt_to_bits(s, value);
    for (int i = 0; i < packing.elements; i++) {
        LLVMValueRef part = LLVMBuildLShr(s->b, word, simt_int(word_type, i * packing.bits), "");
        elements[i] = simt_from_bits(s, resized(c, part, simt_int_type(s, packing.bits)), type);
    }
}

/* ---- calls --------------------------------------------------------------------------------------------------------------------------- */

static int registers_of(const AsmCall *c, const Value *value)
{
    return c->pack / packing_of(c, value).elements;
}

static void check_counts(const AsmCall *c)
{
    int results = 0, operands = 0;
    for (int i = 0; i < c->op->result_count; i++)
        results += registers_of(c, c->op->results[i]);
    for (int i = 0; i < c->op->operand_count; i++)
        operands += registers_of(c, tt_operand(c->op, i));
    if (results != c->result_count || operands != c->operand_count)
        tt_error(
            c->op->loc,
            "the constraints of the inline assembly name %d results and %d operands, and %d elements at a "
            "time take %d and %d registers",
            c->result_count, c->operand_count, c->pack, results, operands);
}

static LLVMTypeRef result_type(const AsmCall *c)
{
    LLVMTypeRef types[MOST_REGISTERS];
    for (int i = 0; i < c->result_count; i++)
        types[i] = register_type(c, c->letters[i]);
    return c->result_count == 1 ? types[0]
                                : LLVMStructTypeInContext(c->s->context, types, (unsigned)c->result_count, 0);
}

/* The run for elements first .. first + pack - 1; beyond the last the last is repeated. */
static void run(AsmCall *c, const Assembly *assembly, const Tile *const *operands, int first,
                Tile *const *results)
{
    Simt *s = c->s;
    LLVMValueRef registers[MOST_REGISTERS], elements[MOST_REGISTERS];
    int filled = 0, count = results[0]->count;
    for (int i = 0; i < c->op->operand_count; i++) {
        Packing packing = packing_of(c, tt_operand(c->op, i));
        for (int at = 0; at < c->pack; at += packing.elements) {
            for (int j = 0; j < packing.elements; j++)
                elements[j] = operands[i]->at[TT_MIN(first + at + j, count - 1)];
            registers[filled] = to_register(c, elements, packing, c->letters[c->result_count + filled]);
            filled++;
        }
    }
    LLVMValueRef all = s->ops->assembly(s, assembly, registers, filled);
    int taken = 0;
    for (int i = 0; i < c->op->result_count; i++) {
        Packing packing = packing_of(c, c->op->results[i]);
        LLVMTypeRef type = simt_type(s, c->op->results[i]->type);
        for (int at = 0; at < c->pack; at += packing.elements, taken++) {
            LLVMValueRef one =
                c->result_count == 1 ? all : LLVMBuildExtractValue(s->b, all, (unsigned)taken, "");
            from_register(c, one, c->letters[taken], packing, type, elements);
            for (int j = 0; j < packing.elements && first + at + j < count; j++)
                results[i]->at[first + at + j] = elements[j];
        }
    }
}

void simt_inline_asm(Simt *s, const Op *op)
{
    AsmCall c = {.s = s, .op = op, .pack = (int)tt_int_attr(op, ATTR_pack, 1)};
    read_constraints(&c);
    check_counts(&c);
    Assembly assembly = {tt_string_attr(op, ATTR_text, ""), without_blanks(&c), result_type(&c),
                         tt_has(op, HAS_EFFECT)};
    const Tile **operands = TT_NEW_ARRAY(s->arena, const Tile *, op->operand_count + 1);
    Tile **results = TT_NEW_ARRAY(s->arena, Tile *, op->result_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = simt_tile(s, tt_operand(op, i));
    for (int i = 0; i < op->result_count; i++)
        results[i] = simt_new_tile(s, simt_registers(op->results[i]));
    for (int first = 0; first < results[0]->count; first += c.pack)
        run(&c, &assembly, operands, first, results);
    for (int i = 0; i < op->result_count; i++)
        simt_set(s, op->results[i], results[i]);
}
