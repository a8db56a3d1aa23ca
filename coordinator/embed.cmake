# cmake -DIN=file -DOUT=file.c -DNAME=symbol -P embed.cmake: a file as a C array, so that the program is one file.
file(READ ${IN} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," body "${hex}")
string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?(0x[0-9a-f][0-9a-f],)?)" "\\1\n" body "${body}")
get_filename_component(file ${IN} NAME)
file(WRITE ${OUT} "/* Made from ${file} by embed.cmake. */\n#include \"coordinator/${NAME}.h\"\n
const unsigned char ${NAME}[] = {\n${body}};\nconst size_t ${NAME}_bytes = ${bytes};\n")
