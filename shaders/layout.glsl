// Written by `python -m vkops.gpu.kernels.layout`, whose source explains each name.
#ifndef WORKGROUP_SIZE
#define WORKGROUP_SIZE 64
#endif
const uint TURN = 8u;
const uint ALL_WORDS = ~0u;
const uint MAX_EXCHANGES = 32768u;
const uint RECORDS = 1u;
const uint RECORD_VECTORS = 16u;

const uint HEAD = 0u;
#define HEAD_FIRST_ITEM x
#define HEAD_DST y
#define HEAD_SRC z
#define HEAD_DIGITS w

const uint STEPS = 1u;
#define STEPS_NUMBER x
#define STEPS_DST y
#define STEPS_SRC z
#define STEPS_LIMIT w

const uint STREAM = 1u;
#define STREAM_VECTORS x
#define STREAM_NBYTES y
#define STREAM_SEGMENTS z

const uint FORMAT = 1u;
#define FORMAT_TERMS x
#define FORMAT_WORDS y
#define FORMAT_SIGNED z
#define FORMAT_REVERSE w

const uint ACROSS = 1u;
#define ACROSS_SIZE x
#define ACROSS_FACTOR y
#define ACROSS_SRC z
#define ACROSS_LIMIT w

const uint LIMITS = 1u;
#define LIMITS_FIRST x
#define LIMITS_LAST y

const uint POSITION = 2u;
#define POSITION_STEP x
#define POSITION_DIGIT_0 y
#define POSITION_DIGIT_1 z
#define POSITION_DIGIT_3 w

const uint SEGMENT = 2u;
#define SEGMENT_START x
#define SEGMENT_NBYTES y
#define SEGMENT_ROW_SRC z
#define SEGMENT_SOURCE w

const uint ADVANCE = 2u;
#define ADVANCE_INDICES x
#define ADVANCE_POSITION y
#define ADVANCE_RUN_INDICES z
#define ADVANCE_RUN_POSITION w

const uint LEVEL = 2u;
#define LEVEL_SIZE x
#define LEVEL_FACTOR y

const uint RUN = 3u;
#define RUN_LENGTH x
#define RUN_SRC y
#define RUN_CONSTANT z
#define RUN_ELEMENT w

const uint BLOCK = 3u;
#define BLOCK_ROW_SRC x
#define BLOCK_COLUMN_DST y

const uint ROW = 3u;
#define ROW_NBYTES x
#define ROW_FACTOR y

const uint WITHIN = 3u;
#define WITHIN_FIRST x
#define WITHIN_NUMBER y
#define WITHIN_WORD z

const uint ALONG = 3u;
#define ALONG_SIZE x
#define ALONG_FACTOR y
#define ALONG_DST z
#define ALONG_LIMIT w

const uint STARTS = 3u;
#define STARTS_X x
#define STARTS_Y y
#define STARTS_Z z
#define STARTS_W w

const uint ROWS = 4u;
#define ROWS_NUMBER x
#define ROWS_DST y
#define ROWS_SRC z
#define ROWS_LIMIT w

const uint ROW_ADVANCE = 4u;
#define ROW_ADVANCE_INDICES x
#define ROW_ADVANCE_POSITION y

const uint REACH = 4u;
#define REACH_FIRST x
#define REACH_LAST y

const uint ORIGINS = 4u;
#define ORIGINS_X x
#define ORIGINS_Y y
#define ORIGINS_Z z
#define ORIGINS_W w

const uint PATTERN = 5u;
#define PATTERN_X x
#define PATTERN_Y y
#define PATTERN_Z z
#define PATTERN_W w

const uint GROUP = 5u;
#define GROUP_SIZE x
#define GROUP_FACTOR y
#define GROUP_SRC z

const uint START = 5u;
#define START_INDICES x
#define START_POSITION y

const uint OUTER = 5u;
#define OUTER_ACROSS_DST x
#define OUTER_ACROSS_SRC y
#define OUTER_ALONG_DST z
#define OUTER_ALONG_SRC w

const uint STRIDES = 5u;
#define STRIDES_X x
#define STRIDES_Y y
#define STRIDES_Z z
#define STRIDES_W w

const uint DIGIT = 6u;
#define DIGIT_SIZE x
#define DIGIT_FACTOR y
#define DIGIT_DST z
#define DIGIT_SRC w

const uint DIGIT_ADVANCE = 6u;
#define DIGIT_ADVANCE_INDICES x
#define DIGIT_ADVANCE_POSITION y

const uint TERM = 6u;
#define TERM_OFFSET x
#define TERM_SIZE y
#define TERM_STRIDE z

#define HEADER_RECORDS x
#define HEADER_ITEMS y
#define HEADER_TURNS z
