/* Line tables of object files (DWARF debugging information format, versions 2 to 5, section 6.2): programs for a small
 * machine, whose registers after each row say which line the instructions from an address on come from. The code is one
 * section, and one sequence of addresses from 0 on. */
#include "codegen/object.h"
#include <llvm-c/Object.h>

/* ---- sections ------------------------------------------------------------------------------------------------------- */

Section tt_object_section(Codegen *codegen, LLVMMemoryBufferRef object, const char *name)
{
    char *error = NULL;
    Section section = {0};
    LLVMBinaryRef binary = LLVMCreateBinary(object, codegen->context, &error);
    if (!binary)
        tt_bug("LLVM: %s", tt_take_llvm_message(codegen->arena, error));
    LLVMSectionIteratorRef at = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMObjectFileIsSectionIteratorAtEnd(binary, at); LLVMMoveToNextSection(at)) {
        const char *own = LLVMGetSectionName(at);
        if (own && !strcmp(own, name))
            section = (Section){(const uint8_t *)LLVMGetSectionContents(at), LLVMGetSectionSize(at)};
    }
    LLVMDisposeSectionIterator(at);
    LLVMDisposeBinary(binary);
    return section;
}

/* ---- the program ---------------------------------------------------------------------------------------------------- */

typedef struct Reader {
    const uint8_t *at, *end;
} Reader;

static uint64_t read_bytes(Reader *reader, int bytes)
{
    uint64_t value = 0;
    if (reader->end - reader->at < bytes) {
        reader->at = reader->end;
        return 0;
    }
    memcpy(&value, reader->at, (size_t)bytes); /* of this machine, so in its order */
    reader->at += bytes;
    return value;
}

/* LEB128: seven bits a byte, the lowest first; the top bit says that more follow. */
static uint64_t read_number(Reader *reader, bool is_signed)
{
    uint64_t value = 0, byte = 0x80;
    int shift = 0;
    for (; byte & 0x80 && reader->at < reader->end && shift < 64; shift += 7)
        value |= ((byte = *reader->at++) & 0x7f) << shift;
    if (is_signed && byte & 0x40 && shift < 64)
        value |= ~(uint64_t)0 << shift;
    return value;
}

typedef struct LineMachine {
    Reader code;
    uint64_t step;        /* bytes of the shortest instruction */
    int line_base;        /* special opcodes move the line by this or more ... */
    uint64_t line_range;  /* ... below this, and the address by the quotient */
    uint64_t opcode_base; /* the first special one */
    uint8_t operand_counts[256];
    uint64_t address, line, wanted;
    uint64_t row_address, row_line; /* of the row before */
    bool has_row, found;
} LineMachine;

enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, CONST_ADD_PC = 8, FIXED_ADVANCE_PC = 9 };
enum { END_SEQUENCE = 1, SET_ADDRESS = 2 };

/* The header: what the program needs of it. Lists of files follow, and are passed over. */
static LineMachine start(Section section, uint64_t wanted)
{
    LineMachine m = {.code = {section.data, section.data + section.size}, .wanted = wanted, .line = 1};
    uint64_t length = read_bytes(&m.code, 4), version = read_bytes(&m.code, 2);
    if (length + 4 > section.size)
        length = section.size - 4;
    m.code.end = section.data + 4 + length;
    if (version >= 5)
        read_bytes(&m.code, 2); /* sizes of addresses */
    uint64_t header = read_bytes(&m.code, 4);
    Reader program = {m.code.at + TT_MIN(header, (uint64_t)(m.code.end - m.code.at)), m.code.end};
    m.step = read_bytes(&m.code, 1);
    if (version >= 4)
        read_bytes(&m.code, 1); /* of very long instruction words */
    read_bytes(&m.code, 1);
    m.line_base = (int8_t)read_bytes(&m.code, 1);
    m.line_range = read_bytes(&m.code, 1);
    m.opcode_base = read_bytes(&m.code, 1);
    for (uint64_t i = 1; i < m.opcode_base; i++)
        m.operand_counts[i] = (uint8_t)read_bytes(&m.code, 1);
    m.line_range = TT_MAX(m.line_range, 1u);
    m.code = program;
    return m;
}

static void add_row(LineMachine *m)
{
    if (m->has_row && m->row_address <= m->wanted && m->wanted < m->address)
        m->found = true;
    if (m->found)
        return;
    m->has_row = true;
    m->row_address = m->address;
    m->row_line = m->line;
}

static void run_extended(LineMachine *m)
{
    uint64_t length = read_number(&m->code, false);
    Reader operands = {m->code.at, m->code.at + TT_MIN(length, (uint64_t)(m->code.end - m->code.at))};
    m->code.at = operands.end;
    uint64_t opcode = read_bytes(&operands, 1);
    if (opcode == SET_ADDRESS)
        m->address = read_bytes(&operands, 8);
    if (opcode != END_SEQUENCE)
        return;
    add_row(m);
    m->has_row = false;
    m->address = 0;
    m->line = 1;
}

static void run_opcode(LineMachine *m, uint64_t opcode)
{
    uint64_t special = (opcode >= m->opcode_base ? opcode : 255) - m->opcode_base;
    if (opcode >= m->opcode_base || opcode == CONST_ADD_PC)
        m->address += m->step * (special / m->line_range);
    if (opcode >= m->opcode_base)
        m->line += (uint64_t)m->line_base + special % m->line_range;
    if (opcode >= m->opcode_base || opcode == COPY)
        add_row(m);
    else if (opcode == ADVANCE_PC)
        m->address += m->step * read_number(&m->code, false);
    else if (opcode == ADVANCE_LINE)
        m->line += read_number(&m->code, true);
    else if (opcode == FIXED_ADVANCE_PC)
        m->address += read_bytes(&m->code, 2);
    else
        for (int i = m->operand_counts[opcode]; i > 0; i--)
            read_number(&m->code, false);
}

static uint64_t find_line(Section section, uint64_t address)
{
    if (section.size < 16)
        return 0;
    LineMachine m = start(section, address);
    while (!m.found && m.code.at < m.code.end) {
        uint64_t opcode = read_bytes(&m.code, 1);
        if (opcode)
            run_opcode(&m, opcode);
        else
            run_extended(&m);
    }
    return m.found ? m.row_line : 0;
}

int tt_codegen_line_at(Codegen *codegen, size_t offset, uint64_t *hash)
{
    LLVMMemoryBufferRef object = tt_codegen_object_buffer(codegen);
    Section code = tt_object_section(codegen, object, ".text");
    *hash = tt_hash_bytes(code.data, code.size, 0);
    uint64_t line = find_line(tt_object_section(codegen, object, ".debug_line"), offset);
    LLVMDisposeMemoryBuffer(object);
    return (int)line;
}
