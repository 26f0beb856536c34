# Writes OUT, a C++ file that defines NAME with the text of SCHEMA.
file(READ ${SCHEMA} text)
# A string literal has a length limit; pieces are joined by the compiler.
string(LENGTH "${text}" total)
set(body "")
set(at 0)
while(at LESS total)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND body "R\"__aiq__(${piece})__aiq__\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${OUT} "namespace aiq {\nextern const char* const ${NAME};\nconst char* const ${NAME} =\n${body};\n}  // namespace aiq\n")
