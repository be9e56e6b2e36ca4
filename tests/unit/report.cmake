# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The record, its views and the statistics behind them.
doorbell_test(statistics_test unit ${CMAKE_CURRENT_LIST_DIR}/statistics_test.cpp)
doorbell_test(histogram_test unit ${CMAKE_CURRENT_LIST_DIR}/histogram_test.cpp)
doorbell_test(tally_test unit ${CMAKE_CURRENT_LIST_DIR}/tally_test.cpp
              ${CMAKE_CURRENT_LIST_DIR}/tally_figures_test.cpp ${CMAKE_CURRENT_LIST_DIR}/bench_run_test.cpp)
doorbell_test(environment_test unit ${CMAKE_CURRENT_LIST_DIR}/environment_test.cpp)
doorbell_test(report_test unit ${CMAKE_CURRENT_LIST_DIR}/report_test.cpp)
doorbell_test(csv_test unit ${CMAKE_CURRENT_LIST_DIR}/csv_test.cpp)

# report_test leaves its samples here for the tests that read them with other eyes.
set(report_samples ${CMAKE_CURRENT_BINARY_DIR}/report-samples)
set_tests_properties(report_test PROPERTIES
  ENVIRONMENT "DOORBELL_TEST_OUT=${report_samples}" FIXTURES_SETUP report_samples)

# The system's interpreter, because jsonschema and matplotlib come as Debian packages.
set(DOORBELL_PYTHON /usr/bin/python3 CACHE FILEPATH "the Python that runs the report's tests")

get_filename_component(report_root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
add_test(NAME report_schema
         COMMAND ${DOORBELL_PYTHON} ${report_root}/scripts/validate-result.py
                 ${report_samples}/sample.json ${report_samples}/empty.json)
add_test(NAME report_python
         COMMAND ${DOORBELL_PYTHON} -m unittest discover --verbose
                 --start-directory ${report_root}/tests/python)
set_tests_properties(report_schema report_python PROPERTIES
  LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 300 FIXTURES_REQUIRED report_samples
  ENVIRONMENT "DOORBELL_TEST_OUT=${report_samples};PYTHONDONTWRITEBYTECODE=1")
