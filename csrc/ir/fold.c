#include "ir/ir.h"
bool tt_constant_int(const Value *value, int64_t *out){(void)value;(void)out;return false;}
bool tt_constant_float(const Value *value, double *out){(void)value;(void)out;return false;}
bool tt_is_constant(const Value *value){(void)value;return false;}
Value *tt_fold(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type, Attr *attrs){(void)b;(void)opcode;(void)operands;(void)operand_count;(void)type;(void)attrs;return NULL;}
