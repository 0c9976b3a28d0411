/* LLVM IR building blocks: see emit.h. */
#include "cpu/emit.h"

Emit *new_emit(Codegen *codegen, Arena *arena)
{
    Emit *e = TT_NEW(arena, Emit);
    LLVMContextRef context = codegen->context;
    *e = (Emit){
        .codegen = codegen,
        .arena = arena,
        .context = context,
        .module = codegen->module,
        .i1 = LLVMInt1TypeInContext(context),
        .i8 = LLVMInt8TypeInContext(context),
        .i16 = LLVMInt16TypeInContext(context),
        .i32 = LLVMInt32TypeInContext(context),
        .i64 = LLVMInt64TypeInContext(context),
        .f16 = LLVMHalfTypeInContext(context),
        .f32 = LLVMFloatTypeInContext(context),
        .f64 = LLVMDoubleTypeInContext(context),
        .ptr = LLVMPointerTypeInContext(context, 0),
        .nothing = LLVMVoidTypeInContext(context),
        .widest = codegen->host.vector_bytes,
    };
    return e;
}

/* ---- types ---------------------------------------------------------------------------------------------------------- */

LLVMTypeRef register_type(const Emit *e, const Type *type)
{
    type = tt_element(type);
    switch (type->kind) {
    case TT_F32:
        return e->f32;
    case TT_F64:
        return e->f64;
    case TT_PTR:
        return e->ptr;
    default:
        return LLVMIntTypeInContext(e->context, (unsigned)tt_bit_width(type));
    }
}

LLVMTypeRef memory_type(const Emit *e, const Type *type)
{
    return tt_is_bool(type) ? e->i8 : register_type(e, type);
}

LLVMTypeRef widened(LLVMTypeRef element, int width)
{
    return width ? LLVMVectorType(element, (unsigned)width) : element;
}

int width_of(LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(type) : 0;
}

LLVMTypeRef element_of(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

bool is_float_type(LLVMTypeRef type)
{
    LLVMTypeKind kind = LLVMGetTypeKind(element_of(type));
    return kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind || kind == LLVMHalfTypeKind;
}

LLVMTypeRef with_element(LLVMTypeRef type, LLVMTypeRef element)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(type))
                                                       : element;
}

/* ---- constants -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef splat_constant(LLVMTypeRef type, LLVMValueRef scalar)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return scalar;
    LLVMValueRef lanes[128];
    unsigned count = LLVMGetVectorSize(type);
    TT_ASSERT(count <= TT_COUNT(lanes));
    for (unsigned i = 0; i < count; i++)
        lanes[i] = scalar;
    return LLVMConstVector(lanes, count);
}

LLVMValueRef const_int(LLVMTypeRef type, int64_t value)
{
    return splat_constant(type, LLVMConstInt(element_of(type), (unsigned long long)value, true));
}

LLVMValueRef const_float(LLVMTypeRef type, double value)
{
    return splat_constant(type, LLVMConstReal(element_of(type), value));
}

LLVMValueRef const_scalar(const Emit *e, const Type *type, const Attr *value)
{
    const Type *element = tt_element(type);
    LLVMTypeRef form = register_type(e, element);
    if (element->kind == TT_PTR)
        return value->i ? LLVMConstIntToPtr(LLVMConstInt(e->i64, (unsigned long long)value->i, true), e->ptr)
                        : LLVMConstNull(e->ptr);
    if (!tt_is_float(element))
        return const_int(form, value->i);
    if (element->kind == TT_F32 || element->kind == TT_F64)
        return const_float(form, value->f);
    return const_int(form, (int64_t)tt_float_encode(tt_float_format(element), value->f, false));
}

LLVMValueRef const_lanes(LLVMTypeRef element, int width, int64_t first, int64_t step)
{
    LLVMValueRef lanes[64];
    TT_ASSERT(width <= (int)TT_COUNT(lanes));
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(element, (unsigned long long)(first + i * step), true);
    return width ? LLVMConstVector(lanes, (unsigned)width)
                 : LLVMConstInt(element, (unsigned long long)first, true);
}

LLVMValueRef const_mask(const Emit *e, int width, int active)
{
    LLVMValueRef lanes[128];
    TT_ASSERT(width <= (int)TT_COUNT(lanes));
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(e->i1, i < active, false);
    return LLVMConstVector(lanes, (unsigned)width);
}

/* ---- vectors ---------------------------------------------------------------------------------------------------------- */

LLVMValueRef emit_splat(Emit *e, LLVMValueRef scalar, int width)
{
    if (!width || width_of(scalar))
        return scalar;
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)width);
    if (LLVMIsConstant(scalar) && !LLVMIsAConstantExpr(scalar))
        return splat_constant(type, scalar);
    LLVMValueRef one = LLVMBuildInsertElement(e->b, LLVMGetPoison(type), scalar, const_int(e->i32, 0), "");
    LLVMValueRef zeros = LLVMConstNull(LLVMVectorType(e->i32, (unsigned)width));
    return LLVMBuildShuffleVector(e->b, one, LLVMGetPoison(type), zeros, "");
}

LLVMValueRef emit_lane(Emit *e, LLVMValueRef vector, int lane)
{
    if (!width_of(vector))
        return vector;
    return LLVMBuildExtractElement(e->b, vector, const_int(e->i32, lane), "");
}

LLVMValueRef emit_shuffle(Emit *e, LLVMValueRef a, LLVMValueRef b, const int *indices, int count)
{
    LLVMValueRef lanes[128];
    TT_ASSERT(count <= (int)TT_COUNT(lanes));
    for (int i = 0; i < count; i++)
        lanes[i] = indices[i] < 0 ? LLVMGetPoison(e->i32) : const_int(e->i32, indices[i]);
    return LLVMBuildShuffleVector(e->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)),
                                  LLVMConstVector(lanes, (unsigned)count), "");
}

LLVMValueRef emit_part(Emit *e, LLVMValueRef vector, int first, int count)
{
    if (!count)
        return emit_lane(e, vector, first);
    if (first == 0 && count == width_of(vector))
        return vector;
    int indices[64];
    for (int i = 0; i < count; i++)
        indices[i] = first + i;
    return emit_shuffle(e, vector, NULL, indices, count);
}

LLVMValueRef emit_join(Emit *e, LLVMValueRef a, LLVMValueRef b)
{
    int indices[128], first = width_of(a), second = width_of(b);
    if (second < first) { /* a shuffle takes vectors of one type */
        for (int i = 0; i < first; i++)
            indices[i] = i < second ? i : -1;
        b = emit_shuffle(e, b, NULL, indices, first);
    }
    for (int i = 0; i < first + second; i++)
        indices[i] = i;
    return emit_shuffle(e, a, b, indices, first + second);
}

bool is_all_true(LLVMValueRef mask)
{
    return !mask || (LLVMIsConstant(mask) && mask == LLVMConstAllOnes(LLVMTypeOf(mask)));
}

LLVMValueRef emit_select(Emit *e, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b)
{
    return is_all_true(condition) ? a : LLVMBuildSelect(e->b, condition, a, b, "");
}

/* ---- calls ------------------------------------------------------------------------------------------------------------ */

LLVMValueRef emit_intrinsic(Emit *e, const char *name, const LLVMTypeRef *types, int type_count,
                            LLVMValueRef *args, int arg_count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id)
        tt_bug("LLVM has no intrinsic %s", name);
    LLVMTypeRef *overloads = (LLVMTypeRef *)types;
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, overloads, (size_t)type_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, (size_t)type_count);
    return LLVMBuildCall2(e->b, type, function, args, (unsigned)arg_count, "");
}

LLVMValueRef emit_intrinsic1(Emit *e, const char *name, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return emit_intrinsic(e, name, &type, 1, &x, 1);
}

LLVMValueRef emit_intrinsic2(Emit *e, const char *name, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return emit_intrinsic(e, name, &type, 1, (LLVMValueRef[]){x, y}, 2);
}

LLVMValueRef emit_call(Emit *e, const char *name, LLVMTypeRef result, LLVMValueRef *args, int arg_count)
{
    LLVMTypeRef params[8];
    TT_ASSERT(arg_count <= (int)TT_COUNT(params));
    for (int i = 0; i < arg_count; i++)
        params[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, params, (unsigned)arg_count, false);
    LLVMValueRef function = LLVMGetNamedFunction(e->module, name);
    if (!function)
        function = LLVMAddFunction(e->module, name, type);
    return LLVMBuildCall2(e->b, type, function, args, (unsigned)arg_count, "");
}

/* ---- memory ----------------------------------------------------------------------------------------------------------- */

LLVMValueRef emit_load(Emit *e, LLVMTypeRef type, LLVMValueRef pointer, int align)
{
    LLVMValueRef load = LLVMBuildLoad2(e->b, type, pointer, "");
    LLVMSetAlignment(load, (unsigned)align);
    return load;
}

LLVMValueRef emit_store(Emit *e, LLVMValueRef value, LLVMValueRef pointer, int align)
{
    LLVMValueRef store = LLVMBuildStore(e->b, value, pointer);
    LLVMSetAlignment(store, (unsigned)align);
    return store;
}

/* Up to LLVM 21 the masked intrinsics take the alignment as an argument, since then as an attribute of the pointer. */
static LLVMValueRef call_masked(Emit *e, const char *name, const LLVMTypeRef *types, LLVMValueRef *args,
                                int arg_count, int pointer_at, int align)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef *overloads = (LLVMTypeRef *)types;
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, 2);
    bool as_argument = (int)LLVMCountParamTypes(type) > arg_count;
    LLVMValueRef all[5];
    int count = 0;
    for (int i = 0; i < arg_count; i++) {
        all[count++] = args[i];
        if (as_argument && i == pointer_at)
            all[count++] = const_int(e->i32, align);
    }
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, overloads, 2);
    LLVMValueRef call = LLVMBuildCall2(e->b, type, function, all, (unsigned)count, "");
    if (!as_argument) {
        unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
        LLVMAttributeRef attribute = LLVMCreateEnumAttribute(e->context, kind, (uint64_t)align);
        LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)(pointer_at + 1), attribute);
    }
    return call;
}

/* The only lane of a constant mask, or -1. One-lane accesses are made scalar here, because LLVM 22 makes them so wrongly:
 * a masked store of one lane that follows a truncation writes the element in its width before it. */
static int only_lane(LLVMValueRef mask)
{
    int lane = -1;
    if (!mask || !LLVMIsConstant(mask))
        return -1;
    for (int i = 0; i < width_of(mask); i++) {
        LLVMValueRef bit = LLVMGetAggregateElement(mask, (unsigned)i);
        bool is_set = bit && LLVMIsAConstantInt(bit) && LLVMConstIntGetZExtValue(bit);
        if (is_set && lane >= 0)
            return -1;
        if (is_set)
            lane = i;
    }
    return lane;
}

static LLVMValueRef lane_pointer(Emit *e, LLVMTypeRef element, LLVMValueRef pointer, int lane)
{
    return emit_index(e, element, pointer, const_int(e->i64, lane));
}

LLVMValueRef emit_masked_load(Emit *e, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef mask,
                              LLVMValueRef other, int align)
{
    int width = (int)LLVMGetVectorSize(type);
    bool scattered = width_of(pointer) != 0;
    if (!scattered && is_all_true(mask))
        return emit_load(e, type, pointer, align);
    int lane = scattered ? -1 : only_lane(mask);
    if (lane >= 0) {
        LLVMTypeRef element = element_of(type);
        LLVMValueRef value = emit_load(e, element, lane_pointer(e, element, pointer, lane), align);
        return LLVMBuildInsertElement(e->b, other ? other : LLVMConstNull(type), value,
                                      const_int(e->i32, lane), "");
    }
    if (!mask)
        mask = const_mask(e, width, width);
    LLVMTypeRef types[2] = {type, LLVMTypeOf(pointer)};
    LLVMValueRef args[3] = {pointer, mask, other ? other : LLVMConstNull(type)};
    return call_masked(e, scattered ? "llvm.masked.gather" : "llvm.masked.load", types, args, 3, 0, align);
}

void emit_masked_store(Emit *e, LLVMValueRef value, LLVMValueRef pointer, LLVMValueRef mask, int align)
{
    bool scattered = width_of(pointer) != 0;
    if (!scattered && is_all_true(mask)) {
        emit_store(e, value, pointer, align);
        return;
    }
    int lane = scattered ? -1 : only_lane(mask);
    if (lane >= 0) {
        pointer = lane_pointer(e, element_of(LLVMTypeOf(value)), pointer, lane);
        emit_store(e, emit_lane(e, value, lane), pointer, align);
        return;
    }
    if (!mask)
        mask = const_mask(e, width_of(value), width_of(value));
    LLVMTypeRef types[2] = {LLVMTypeOf(value), LLVMTypeOf(pointer)};
    LLVMValueRef args[3] = {value, pointer, mask};
    call_masked(e, scattered ? "llvm.masked.scatter" : "llvm.masked.store", types, args, 3, 1, align);
}

LLVMValueRef emit_offset(Emit *e, LLVMValueRef pointer, int64_t bytes)
{
    return bytes ? emit_index(e, e->i8, pointer, const_int(e->i64, bytes)) : pointer;
}

LLVMValueRef emit_index(Emit *e, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index)
{
    return LLVMBuildGEP2(e->b, element, pointer, &index, 1, "");
}

LLVMValueRef to_memory_form(Emit *e, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    return element_of(type) == e->i1 ? LLVMBuildZExt(e->b, value, with_element(type, e->i8), "") : value;
}

LLVMValueRef to_register_form(Emit *e, LLVMValueRef value, const Type *type)
{
    if (!tt_is_bool(type))
        return value;
    return LLVMBuildICmp(e->b, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

/* ---- loops ------------------------------------------------------------------------------------------------------------ */

LLVMBasicBlockRef new_block(Emit *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

EmitLoop begin_loop(Emit *e, int64_t first, int64_t end, int64_t step, LLVMValueRef *carried,
                    int carried_count)
{
    return begin_loop_between(e, const_int(e->i64, first), const_int(e->i64, end), step, carried,
                              carried_count);
}

EmitLoop begin_loop_between(Emit *e, LLVMValueRef first, LLVMValueRef end, int64_t step,
                            LLVMValueRef *carried, int carried_count)
{
    EmitLoop loop = {.end = end, .step = step, .phi_count = carried_count};
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    loop.header = new_block(e, "loop");
    LLVMBuildBr(e->b, loop.header);
    LLVMPositionBuilderAtEnd(e->b, loop.header);
    loop.index = LLVMBuildPhi(e->b, e->i64, "");
    LLVMAddIncoming(loop.index, &first, &before, 1);
    loop.phis = TT_NEW_ARRAY(e->arena, LLVMValueRef, carried_count);
    for (int i = 0; i < carried_count; i++) {
        loop.phis[i] = LLVMBuildPhi(e->b, LLVMTypeOf(carried[i]), "");
        LLVMAddIncoming(loop.phis[i], &carried[i], &before, 1);
        carried[i] = loop.phis[i];
    }
    return loop;
}

void end_loop(Emit *e, EmitLoop *loop, LLVMValueRef *carried)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b), exit = new_block(e, "after");
    LLVMValueRef next = LLVMBuildNUWAdd(e->b, loop->index, const_int(e->i64, loop->step), "");
    LLVMValueRef more = LLVMBuildICmp(e->b, LLVMIntULT, next, loop->end, "");
    LLVMBuildCondBr(e->b, more, loop->header, exit);
    LLVMAddIncoming(loop->index, &next, &latch, 1);
    for (int i = 0; i < loop->phi_count; i++)
        LLVMAddIncoming(loop->phis[i], &carried[i], &latch, 1);
    LLVMPositionBuilderAtEnd(e->b, exit);
}
