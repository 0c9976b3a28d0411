/* Structures to bytes and back: one function a structure says its fields in their order, whichever way they go. What is
 * read may be anything: a field that is not there, or does not fit, makes the reading fail, and never more. */
#include "support/support.h"

static const void *take(Codec *codec, size_t size)
{
    const char *at = codec->at;
    if (codec->failed || size > (size_t)(codec->end - at)) {
        codec->failed = true;
        return NULL;
    }
    codec->at += size;
    return at;
}

int64_t tt_codec_number(Codec *codec, int64_t value)
{
    if (codec->out) {
        tt_text_add_n(codec->out, (const char *)&value, sizeof value);
        return value;
    }
    const void *from = take(codec, sizeof value);
    return from ? *(int64_t *)memcpy(&value, from, sizeof value) : 0;
}

double tt_codec_real(Codec *codec, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = tt_codec_number(codec, bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

int tt_codec_count(Codec *codec, int count)
{
    int64_t read = tt_codec_number(codec, count);
    if (codec->out || (read >= 0 && read <= codec->end - codec->at)) /* an item takes a byte or more */
        return (int)read;
    codec->failed = true;
    return 0;
}

/* A zero behind them: texts are read where they lie. */
Bytes tt_codec_bytes(Codec *codec, Bytes bytes)
{
    if (codec->out) {
        tt_codec_number(codec, bytes.data ? (int64_t)bytes.size : -1);
        tt_text_add_n(codec->out, bytes.data ? bytes.data : "", bytes.data ? bytes.size : 0);
        tt_text_add_n(codec->out, "", 1);
        return bytes;
    }
    int64_t size = tt_codec_number(codec, 0);
    if (size < -1 || size > codec->end - codec->at)
        codec->failed = true;
    const char *data = take(codec, (size_t)TT_MAX(size, 0) + 1);
    if (!data || data[TT_MAX(size, 0)]) {
        codec->failed = true;
        return (Bytes){0};
    }
    return size < 0 ? (Bytes){0} : (Bytes){data, (size_t)size};
}

const char *tt_codec_string(Codec *codec, const char *text)
{
    Bytes bytes = tt_codec_bytes(codec, (Bytes){text, text ? strlen(text) : 0});
    if (bytes.data && memchr(bytes.data, 0, bytes.size))
        codec->failed = true;
    return bytes.data;
}
