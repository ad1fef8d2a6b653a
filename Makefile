# ds4: native inference engine. Targets: make, make debug, make asan, make tsan, make test, make demo, make deps, make help.
# BUILD is the output folder; MODE selects the flags (release, debug, asan, tsan).
MODE  ?= release
BUILD ?= build/$(MODE)
CC    ?= cc

WARN   := -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wno-unused-parameter
# No fast-math and no contraction anywhere: the order and rounding of every sum is part of docs/numerics.md.
CFLAGS_COMMON := -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -ffp-contract=off -fno-math-errno -pthread -MMD -MP $(WARN)
CFLAGS_release := -O2 -g
CFLAGS_debug   := -O0 -g3
CFLAGS_asan    := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS_tsan    := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_tsan   := -fsanitize=thread
ALL_CFLAGS  := $(CFLAGS_COMMON) $(CFLAGS_$(MODE)) $(CFLAGS)
ALL_LDFLAGS := $(LDFLAGS_$(MODE)) $(LDFLAGS) -pthread
LIBS := -lpcre2-8 -lm

# SRC_DIRS and TESTS can be narrowed on the command line while one part is being worked on.
SRC_DIRS ?= $(wildcard src/* src/*/* src/*/*/*)
TESTS    ?= $(wildcard tests/unit/test_*.c tests/device/test_*.c tests/model/test_*.c tests/e2e/test_*.c)

LIB_SRC  := $(sort $(foreach d,$(SRC_DIRS),$(wildcard $(d)/*.c)))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o)
LIB      := $(BUILD)/libds4.a
SUP_SRC  := $(wildcard tests/support/*.c)
SUP_OBJ  := $(SUP_SRC:%.c=$(BUILD)/%.o)
TEST_BIN := $(TESTS:%.c=$(BUILD)/%)
PROGRAMS := $(notdir $(wildcard cmd/*))
PROG_BIN := $(PROGRAMS:%=$(BUILD)/%)

.PHONY: all debug asan tsan lib tests programs clean
.SECONDARY:
all: programs
debug asan tsan: ; $(MAKE) MODE=$@ all
lib: $(LIB)
tests: $(TEST_BIN)
programs: $(PROG_BIN)

$(LIB): $(LIB_OBJ)
	@mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^

# Files named *_avx2.c hold AVX2 kernels; they are called only where the processor has the instructions.
$(BUILD)/%_avx2.o: ISA_FLAGS := -mavx2 -mfma -mf16c
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ISA_FLAGS) -c $< -o $@

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUP_OBJ) $(LIB)
	$(CC) $(ALL_LDFLAGS) $^ -o $@ -lcmocka $(LIBS)
