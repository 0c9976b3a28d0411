/* String builder in an arena. */
#include "support/support.h"
#include <stdio.h>

static void reserve(Text *text, size_t more)
{
    if (text->length + more + 1 <= text->capacity)
        return;
    size_t capacity = TT_MAX(text->capacity * 2, text->length + more + 1);
    capacity = TT_MAX(capacity, (size_t)64);
    char *data = tt_arena_alloc(text->arena, capacity);
    if (text->length)
        memcpy(data, text->data, text->length);
    text->data = data;
    text->capacity = capacity;
}

void tt_text_add_n(Text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void tt_text_add_string(Text *text, const char *string) { tt_text_add_n(text, string, strlen(string)); }

void tt_text_add_number(Text *text, int64_t number)
{
    enum { DIGITS = 20 }; /* and a sign */
    char digits[DIGITS + 1], *first = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--first = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--first = '-';
    tt_text_add_n(text, first, (size_t)(digits + sizeof digits - first));
}

/* Into the room that there is; once more if it does not suffice. */
void tt_text_add_v(Text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(room ? text->data + text->length : NULL, room, format, args);
    if (length > 0 && (size_t)length >= room) {
        reserve(text, (size_t)length);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    }
    text->length += (size_t)TT_MAX(length, 0);
    va_end(again);
}

void tt_text_add(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tt_text_add_v(text, format, args);
    va_end(args);
}

int tt_decimal_digits(int64_t number) { return snprintf(NULL, 0, "%lld", (long long)number); }
