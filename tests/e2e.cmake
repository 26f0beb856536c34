# End-to-end tests: Python over the built programs; each file is one test.
if(TARGET aiq AND TARGET aiqd AND TARGET aiq-sim)
  file(GLOB e2e_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/e2e/test_*.py)
  # Quick ones that touch every thread; they also run under the sanitizers.
  set(e2e_sanitized one_job single_flight daemon answers)

  foreach(file ${e2e_files})
    string(REGEX REPLACE ".*/test_(.*)\\.py$" "\\1" subject ${file})
    add_test(NAME e2e_${subject} COMMAND /usr/bin/python3 -B ${file})
    set(environment AIQ_BIN_DIR=$<TARGET_FILE_DIR:aiq>)
    if(AIQ_SANITIZE)
      list(APPEND environment AIQ_SLOW=1)
    endif()
    set(labels e2e)
    if(subject IN_LIST e2e_sanitized)
      list(APPEND labels sanitize)
    endif()
    set_tests_properties(e2e_${subject} PROPERTIES
      ENVIRONMENT "${environment}" LABELS "${labels}" TIMEOUT 600)
  endforeach()

  # What stands in examples/, driven by bats.
  file(GLOB example_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/examples/*.bats)
  foreach(file ${example_files})
    get_filename_component(subject ${file} NAME_WE)
    add_test(NAME example_${subject} COMMAND bats ${file})
    set_tests_properties(example_${subject} PROPERTIES
      ENVIRONMENT AIQ_BIN_DIR=$<TARGET_FILE_DIR:aiq> LABELS "e2e" TIMEOUT 120)
  endforeach()
endif()
