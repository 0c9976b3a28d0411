/* From a module of tile IR to a compiled kernel: one LLVM function a tile function, and an entry that runs a range of
 * programs. Regions are emitted group by group; scalars where they stand in the program, or earlier when a nest that
 * moved up needs them. */
#include "cpu/lower.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>

void straight(Lower *l) { l->e->b = l->builders[0]; }

LLVMValueRef buffer_pointer(Lower *l, const Buffer *buffer)
{
    return buffer->outside ? buffer->outside : emit_offset(l->e, l->scratch, buffer->offset);
}

/* ---- scalars ------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef emit_scalar(Lower *l, Op *op)
{
    Emit *e = l->e;
    LLVMValueRef operands[8];
    if (op->operand_count > (int)TT_COUNT(operands))
        tt_unsupported(op->loc, "the CPU calls functions of at most %zu arguments", TT_COUNT(operands));
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = lower_scalar(l, tt_operand(op, i));
    straight(l);
    switch (op->opcode) {
    case OP_constant:
        return const_scalar(e, op->results[0]->type, tt_find_attr(op, ATTR_value));
    case OP_program_id:
        return l->program[tt_int_attr(op, ATTR_axis, 0)];
    case OP_num_programs:
        return l->grid[tt_int_attr(op, ATTR_axis, 0)];
    case OP_hint:
        return operands[0];
    default:
        if (!tt_has(op, ELEMENTWISE))
            tt_bug("cpu: no scalar operation %s", tt_op_infos[op->opcode].name);
        return emit_elementwise(e, op, operands);
    }
}

LLVMValueRef lower_scalar(Lower *l, Value *value)
{
    ValueInfo *info = info_of(value);
    if (info->scalar)
        return info->scalar;
    if (!value->op || !is_pure_scalar(value->op))
        tt_bug("cpu: a scalar is used before it is computed");
    return info->scalar = emit_scalar(l, value->op);
}

/* ---- regions ------------------------------------------------------------------------------------------------------------------ */

/* The pure scalars in front of `end`, or of the region's terminator. */
static Op *lower_scalars(Lower *l, Op *op, const Op *end)
{
    for (; op && op != end; op = op->next)
        if (is_pure_scalar(op))
            lower_scalar(l, op->results[0]);
    return op;
}

void lower_copy(Lower *l, Value *value, Buffer *to, int64_t origin)
{
    Group group = {.space = value->type, .axis = -1};
    tt_push(l->arena, group.sinks, ((Sink){.kind = SINK_COPY, .value = value, .to = to, .origin = origin}));
    emit_nest(l, &group);
}

static void lower_cat(Lower *l, Op *op)
{
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    const Type *type = op->results[0]->type, *first = tt_operand(op, 0)->type;
    int64_t origin = first->shape[axis];
    for (int i = axis + 1; i < type->rank; i++)
        origin *= type->shape[i];
    Buffer *buffer = info_of(op->results[0])->buffer;
    lower_copy(l, tt_operand(op, 0), buffer, 0);
    lower_copy(l, tt_operand(op, 1), buffer, origin);
    info_of(op->results[0])->stored = true;
}

static void lower_step(Lower *l, Op *op)
{
    switch (op->opcode) {
    case OP_for:
        lower_for(l, op);
        break;
    case OP_while:
        lower_while(l, op);
        break;
    case OP_if:
        lower_if(l, op);
        break;
    case OP_load:
        lower_scalar_load(l, op);
        break;
    case OP_store:
        lower_scalar_store(l, op);
        break;
    case OP_atomic_rmw:
    case OP_atomic_cas:
        lower_scalar_atomic(l, op);
        break;
    case OP_cat:
        lower_cat(l, op);
        break;
    case OP_dot:
        lower_dot(l, op);
        break;
    case OP_call:
        lower_call(l, op);
        break;
    case OP_print:
        lower_print(l, op);
        break;
    default:
        tt_unsupported(op->loc, "the CPU target has no '%s' yet", tt_op_infos[op->opcode].name);
    }
}

static void lower_copies(Lower *l, const RegionPlan *plan)
{
    for (int i = 0; i < plan->copies.count; i++) {
        const YieldCopy *copy = &plan->copies.data[i];
        if (copy->by_way_of)
            lower_copy(l, copy->value, copy->by_way_of, 0);
    }
    for (int i = 0; i < plan->copies.count; i++) {
        const YieldCopy *copy = &plan->copies.data[i];
        if (!copy->by_way_of) {
            lower_copy(l, copy->value, copy->to, 0);
            continue;
        }
        straight(l);
        LLVMBuildMemCpy(l->e->b, buffer_pointer(l, copy->to), 64, buffer_pointer(l, copy->by_way_of), 64,
                        const_int(l->e->i64, copy->to->bytes));
    }
}

void lower_region(Lower *l, Region *region)
{
    const RegionPlan *plan = plan_of(l, region);
    Op *next = region->first;
    for (int i = 0; i < plan->groups.count; i++) {
        const Group *group = plan->groups.data[i];
        straight(l);
        while (next && l->places[next->index].position < group->position) {
            if (is_pure_scalar(next))
                lower_scalar(l, next->results[0]);
            next = next->next;
        }
        if (group->step)
            lower_step(l, group->step);
        else
            emit_nest(l, group);
    }
    straight(l);
    lower_scalars(l, next, NULL);
    lower_copies(l, plan);
    straight(l);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef launch_field(Lower *l, LLVMTypeRef type, size_t offset, int align)
{
    return emit_load(l->e, type, emit_offset(l->e, l->launch, (int64_t)offset), align);
}

static void load_stream_flag(Lower *l)
{
    LLVMValueRef flag = launch_field(l, l->e->i32, offsetof(CpuLaunch, stream), 4);
    l->stream = LLVMBuildICmp(l->e->b, LLVMIntNE, flag, const_int(l->e->i32, 0), "");
}

static LLVMValueRef add_function(Emit *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef function = LLVMAddFunction(e->module, name, type);
    static const char *const attributes[] = {"nounwind"};
    for (size_t i = 0; i < TT_COUNT(attributes); i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], strlen(attributes[i]));
        LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(e->context, kind, 0));
    }
    return function;
}

static void add_parameter_attribute(Emit *e, LLVMValueRef function, int parameter, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)(parameter + 1),
                            LLVMCreateEnumAttribute(e->context, kind, 0));
}

static void release_builder(void *builder) { LLVMDisposeBuilder(builder); }

static Lower *new_lower(Emit *e, Arena *arena, CpuKernel *kernel, Function *function, Map *functions)
{
    Lower *l = TT_NEW(arena, Lower);
    l->e = e;
    l->arena = arena;
    l->kernel = kernel;
    l->function = function;
    l->functions = functions;
    l->plans.arena = l->dots.arena = l->views.arena = arena;
    l->axis = tt_analyze_axis_info(function, arena);
    tt_take_marks(function);
    for (size_t i = 0; i < TT_COUNT(l->builders); i++) {
        l->builders[i] = LLVMCreateBuilderInContext(e->context);
        tt_arena_on_release(arena, release_builder, l->builders[i]);
    }
    return l;
}

static void load_parameters(Lower *l)
{
    LLVMValueRef args = launch_field(l, l->e->ptr, offsetof(CpuLaunch, args), 8);
    const Region *body = l->function->body;
    for (int i = 0; i < body->arg_count; i++) {
        const Type *type = body->args[i]->type;
        if (tt_is_tile(type))
            tt_bug("cpu: a kernel's parameter is a tile");
        LLVMValueRef slot = emit_offset(l->e, args, 8 * i);
        LLVMValueRef value = emit_load(l->e, memory_type(l->e, type), slot, 8);
        info_of(body->args[i])->scalar = to_register_form(l->e, value, type);
    }
}

/* Which axes of the grid a function asks for its place on, as bits; those that calls, prints and assertions need too. */
static unsigned axes_used(const Region *region)
{
    unsigned axes = 0;
    for (const Op *op = region->first; op; op = op->next) {
        if (op->opcode == OP_program_id)
            axes |= 1u << tt_int_attr(op, ATTR_axis, 0);
        else if (op->opcode == OP_call || op->opcode == OP_print || op->opcode == OP_assert)
            axes |= 7;
        for (int i = 0; i < op->region_count; i++)
            axes |= axes_used(op->regions[i]);
    }
    return axes;
}

/* The place of the next program: axis 0 is the fastest. `used` has no gaps from below. */
static void next_program(Lower *l, unsigned used, LLVMValueRef *next)
{
    LLVMBuilderRef b = l->e->b;
    LLVMValueRef carry = const_int(l->e->i32, 1), zero = const_int(l->e->i32, 0);
    for (int i = 0; i < 3 && used >> i; i++) {
        LLVMValueRef up = LLVMBuildAdd(b, l->program[i], carry, "");
        LLVMValueRef wraps = LLVMBuildICmp(b, LLVMIntEQ, up, l->grid[i], "");
        next[i] = emit_select(l->e, wraps, zero, up);
        carry = LLVMBuildZExt(b, wraps, l->e->i32, "");
    }
}

/* void entry(CpuLaunch *launch, void *scratch, int64_t count, int32_t x, int32_t y, int32_t z) */
static void lower_kernel(Lower *l)
{
    Emit *e = l->e;
    LLVMTypeRef params[6] = {e->ptr, e->ptr, e->i64, e->i32, e->i32, e->i32};
    LLVMTypeRef type = LLVMFunctionType(e->nothing, params, TT_COUNT(params), false);
    LLVMValueRef function = add_function(e, l->function->name, type), next[3];
    add_parameter_attribute(e, function, 1, "noalias");
    e->function = function;
    l->launch = LLVMGetParam(function, 0);
    l->scratch = LLVMGetParam(function, 1);
    LLVMBasicBlockRef entry = new_block(e, "entry"), program = new_block(e, "program"),
                      done = new_block(e, "done");
    LLVMPositionBuilderAtEnd(l->builders[0], entry);
    straight(l);
    plan_function(l);
    load_parameters(l);
    unsigned used = axes_used(l->function->body);
    for (int i = 0; i < 3; i++)
        l->grid[i] = launch_field(l, e->i32, offsetof(CpuLaunch, grid) + 4 * (size_t)i, 4);
    load_stream_flag(l);
    LLVMBuildBr(e->b, program);
    LLVMPositionBuilderAtEnd(e->b, program);
    LLVMValueRef left = LLVMBuildPhi(e->b, e->i64, ""), count = LLVMGetParam(function, 2);
    LLVMAddIncoming(left, &count, &entry, 1);
    for (unsigned i = 0; i < 3 && used >> i; i++) {
        LLVMValueRef first = LLVMGetParam(function, 3 + i);
        l->program[i] = LLVMBuildPhi(e->b, e->i32, "");
        LLVMAddIncoming(l->program[i], &first, &entry, 1);
    }
    lower_region(l, l->function->body);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    next_program(l, used, next);
    for (int i = 0; i < 3 && used >> i; i++)
        LLVMAddIncoming(l->program[i], &next[i], &latch, 1);
    LLVMValueRef rest = LLVMBuildSub(e->b, left, const_int(e->i64, 1), "");
    LLVMAddIncoming(left, &rest, &latch, 1);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntEQ, rest, const_int(e->i64, 0), ""), done, program);
    LLVMPositionBuilderAtEnd(e->b, done);
    report_stores(l);
    if (l->kernel->streams) /* so that whoever waits for the programs sees what they stored */
        emit_intrinsic(e, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
    LLVMBuildRetVoid(e->b);
    l->kernel->scratch_size = (size_t)(l->scratch_size + l->callee_scratch);
}

/* ---- functions that are called, not inlined --------------------------------------------------------------------------------- */

static LLVMTypeRef callee_type(Emit *e, const Function *function)
{
    const Region *body = function->body;
    int count = 0;
    LLVMTypeRef *params = TT_NEW_ARRAY(e->arena, LLVMTypeRef, 5 + body->arg_count + function->result_count);
    params[count++] = e->ptr;
    params[count++] = e->ptr;
    for (int i = 0; i < 3; i++)
        params[count++] = e->i32;
    for (int i = 0; i < body->arg_count; i++)
        params[count++] = tt_is_tile(body->args[i]->type) ? e->ptr : register_type(e, body->args[i]->type);
    for (int i = 0; i < function->result_count; i++)
        params[count++] = e->ptr;
    return LLVMFunctionType(e->i1, params, (unsigned)count, false);
}

static void bind_callee_parameters(Lower *l, LLVMValueRef function)
{
    l->launch = LLVMGetParam(function, 0);
    l->scratch = LLVMGetParam(function, 1);
    for (int i = 0; i < 3; i++) {
        l->program[i] = LLVMGetParam(function, (unsigned)(2 + i));
        l->grid[i] = launch_field(l, l->e->i32, offsetof(CpuLaunch, grid) + 4 * (size_t)i, 4);
    }
    load_stream_flag(l);
    const Region *body = l->function->body;
    for (int i = 0; i < body->arg_count; i++) {
        ValueInfo *info = info_of(body->args[i]);
        LLVMValueRef param = LLVMGetParam(function, (unsigned)(5 + i));
        if (!tt_is_tile(body->args[i]->type)) {
            info->scalar = param;
            continue;
        }
        info->buffer = TT_NEW(l->arena, Buffer);
        info->buffer->type = body->args[i]->type;
        info->buffer->outside = param;
        info->stored = true;
    }
}

static void return_results(Lower *l, LLVMValueRef function)
{
    Emit *e = l->e;
    const Op *end = tt_terminator(l->function->body);
    for (int i = 0; i < end->operand_count; i++) {
        Value *value = tt_operand(end, i);
        LLVMValueRef to = LLVMGetParam(function, (unsigned)(5 + l->function->body->arg_count + i));
        if (tt_is_tile(value->type)) {
            Buffer result = {.type = value->type, .outside = to};
            lower_copy(l, value, &result, 0);
            continue;
        }
        LLVMValueRef scalar = to_memory_form(e, lower_scalar(l, value));
        emit_store(e, scalar, to, tt_byte_width(value->type));
    }
    report_stores(l);
    LLVMBuildRet(e->b, const_int(e->i1, 0));
}

LoweredFunction *lower_function(Lower *caller, Function *function, const Loc *call)
{
    void **slot = tt_map_slot_ptr(caller->functions, function);
    LoweredFunction *lowered = *slot;
    if (lowered && !lowered->finished)
        tt_unsupported(call, "'%s' calls itself, which the CPU target cannot do", function->name);
    if (lowered)
        return lowered;
    *slot = lowered = TT_NEW(caller->arena, LoweredFunction);
    Emit *e = caller->e;
    LLVMValueRef outer = e->function;
    Lower *l = new_lower(e, caller->arena, caller->kernel, function, caller->functions);
    l->is_callee = true;
    lowered->type = callee_type(e, function);
    e->function = lowered->function = add_function(e, function->name, lowered->type);
    LLVMSetLinkage(lowered->function, LLVMInternalLinkage);
    LLVMPositionBuilderAtEnd(l->builders[0], new_block(e, "entry"));
    straight(l);
    plan_function(l);
    bind_callee_parameters(l, lowered->function);
    lower_region(l, function->body);
    return_results(l, lowered->function);
    tt_return_marks(function);
    lowered->scratch_size = l->scratch_size + l->callee_scratch;
    lowered->finished = true;
    e->function = outer;
    straight(caller);
    return lowered;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */

static int64_t bytes_stored_in(const Region *region)
{
    int64_t bytes = 0;
    for (const Op *op = region->first; op; op = op->next) {
        if (op->opcode == OP_store && tt_is_tile(tt_operand(op, 1)->type))
            bytes += tt_operand(op, 1)->type->count * tt_byte_width(tt_operand(op, 1)->type);
        for (int i = 0; i < op->region_count; i++)
            bytes += bytes_stored_in(op->regions[i]);
    }
    return bytes;
}

static void lower_module(Codegen *codegen, Module *module, CpuKernel *kernel, Arena *arena)
{
    if (!module->functions)
        tt_bug("cpu: the module has no kernel");
    Map functions = {.arena = arena};
    Emit *emit = new_emit(codegen, arena);
    emit->no_fusion = kernel->options.no_fusion;
    Lower *l = new_lower(emit, arena, kernel, module->functions, &functions);
    kernel->stored_bytes = (float)bytes_stored_in(l->function->body);
    lower_kernel(l);
    tt_return_marks(l->function);
}

static bool wants_verification(void)
{
    const char *wanted = getenv("TRITON_VERIFY");
    return wanted && *wanted && strcmp(wanted, "0");
}

static void release_unfinished(void *holder)
{
    CpuKernel **kernel = holder;
    if (*kernel)
        tt_cpu_release(*kernel);
}

static void release_arena(void *arena) { tt_arena_release(arena); }

/* What LLVM itself calls: for copies, and for rounding on machines that have no instruction for it. */
static void add_library_symbols(Codegen *codegen)
{
    static const struct {
        const char *name;
        void *address;
    } symbols[] = {
        {"memcpy", (void *)memcpy}, {"memset", (void *)memset}, {"memmove", (void *)memmove},
        {"floor", (void *)floor},   {"floorf", (void *)floorf}, {"ceil", (void *)ceil},
        {"ceilf", (void *)ceilf},   {"trunc", (void *)trunc},   {"truncf", (void *)truncf},
        {"rint", (void *)rint},     {"rintf", (void *)rintf},   {"round", (void *)round},
        {"roundf", (void *)roundf}, {"fma", (void *)fma},       {"fmaf", (void *)fmaf},
    };
    for (size_t i = 0; i < TT_COUNT(symbols); i++)
        tt_add_symbol(codegen, symbols[i].name, symbols[i].address);
}

static double milliseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

CpuKernel *tt_cpu_compile(Module *module, const CpuOptions *options, Arena *arena)
{
    CpuKernel **holder = TT_NEW(arena, CpuKernel *);
    tt_arena_on_release(arena, release_unfinished, holder);
    CpuKernel *kernel = *holder = calloc(1, sizeof *kernel);
    if (!kernel)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while compiling"});
    kernel->options = *options;
    kernel->source = tt_print_module(module, &kernel->arena, TT_PRINT_LOCATIONS);
    kernel->name = tt_arena_strdup(&kernel->arena, module->functions->name);
    Arena *work =
        TT_NEW(arena, Arena); /* what only the compilation needs, released at its end or when it fails */
    tt_arena_on_release(arena, release_arena, work);
    Codegen *codegen = tt_new_codegen(work, kernel->name);
    double start = milliseconds();
    lower_module(codegen, module, kernel, work);
    kernel->lowering_milliseconds = milliseconds() - start;
    if (wants_verification())
        tt_codegen_verify(codegen);
    add_library_symbols(codegen);
    kernel->entry = (CpuEntry)(uintptr_t)tt_jit_load(codegen, kernel->name, &kernel->arena);
    *holder = NULL;
    tt_arena_release(work);
    return kernel;
}

void tt_cpu_release(CpuKernel *kernel)
{
    Arena arena = kernel->arena;
    tt_arena_release(&arena);
    free(kernel);
}

CpuFacts tt_cpu_facts(const CpuKernel *kernel)
{
    return (CpuFacts){kernel->lowering_milliseconds, kernel->scratch_size};
}

const char *tt_cpu_text(const CpuKernel *kernel, const char *what, Arena *arena)
{
    bool assembly = !strcmp(what, "asm"), tiles = !strcmp(what, "ttir");
    if (!assembly && !tiles && strcmp(what, "llir"))
        return NULL;
    Module *module = tt_parse_module(arena, kernel->source, kernel->name);
    if (tiles)
        return tt_print_module(module, arena, 0);
    CpuKernel scratch = {.name = kernel->name, .options = kernel->options};
    Codegen *codegen = tt_new_codegen(arena, kernel->name);
    lower_module(codegen, module, &scratch, arena);
    return assembly ? tt_codegen_assembly(codegen) : tt_codegen_llvm_text(codegen);
}
