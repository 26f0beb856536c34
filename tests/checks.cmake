# Checks over the source tree, as tests, and the target that builds what the thread sanitizer runs.
set(AIQ_PYTHON /usr/bin/python3)

function(aiq_check name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS check TIMEOUT 120)
endfunction()

aiq_check(check_layers ${PROJECT_SOURCE_DIR}/scripts/check layers)
aiq_check(check_layers_itself ${AIQ_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/checks/test_check_layers.py)
aiq_check(check_money_exact ${AIQ_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/checks/test_money_exact.py)
aiq_check(check_man ${PROJECT_SOURCE_DIR}/scripts/check man)
aiq_check(check_shell ${PROJECT_SOURCE_DIR}/scripts/check shell)
aiq_check(check_format ${PROJECT_SOURCE_DIR}/scripts/check format)

# The programs, and every test program labelled `threads`.
add_custom_target(threaded_programs)
foreach(program aiq aiqd aiq-sim)
  if(TARGET ${program})
    add_dependencies(threaded_programs ${program})
  endif()
endforeach()
get_property(all_tests DIRECTORY PROPERTY TESTS)
foreach(test ${all_tests})
  get_property(labels TEST ${test} PROPERTY LABELS)
  if(TARGET ${test} AND "threads" IN_LIST labels)
    add_dependencies(threaded_programs ${test})
  endif()
endforeach()
