#include <time.h>

#include "conformance.h"

/* One red dot. */
const unsigned char PNG[] =
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\xda\x63\xf8\xcf\xc0\0\0\x03\x01\x01\0"
    "\xf7\x03" "AC\0\0\0\0IEND\xae" "B`\x82";
const size_t PNG_SIZE = sizeof PNG - 1;

/* Four samples of silence at 8 kHz. */
const unsigned char WAV[] =
    "RIFF(\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\x04\0\0\0\x80\x80\x80\x80";
const size_t WAV_SIZE = sizeof WAV - 1;

/* Blocking is fine here: nothing else runs in the sandbox of this call. */
void wait_ms(unsigned milliseconds) {
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&time, NULL);
}

void wharf_plugin(void) {
    add_plain();
    add_asking();
    add_tasks();
    add_abilities();
    add_resources();
    add_prompts();
}
