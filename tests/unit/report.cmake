# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# The record, its views and the statistics behind them.
# A case leaves samples for the tests that read them with other eyes.
set(report_samples ${CMAKE_CURRENT_BINARY_DIR}/report-samples)
set(here ${CMAKE_CURRENT_LIST_DIR})
doorbell_test(report_test unit ${here}/statistics_test.cpp ${here}/histogram_test.cpp ${here}/tally_test.cpp
              ${here}/tally_figures_test.cpp ${here}/bench_run_test.cpp ${here}/cpu_runner_test.cpp ${here}/cell_table_test.cpp ${here}/environment_test.cpp ${here}/report_test.cpp ${here}/csv_test.cpp
  PROPERTIES ENVIRONMENT DOORBELL_TEST_OUT=${report_samples} FIXTURES_SETUP report_samples)

add_test(NAME report_schema
         COMMAND ${DOORBELL_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/validate-result.py
                 ${report_samples}/sample.json ${report_samples}/empty.json)
add_test(NAME report_python
         COMMAND ${DOORBELL_PYTHON} ${PROJECT_SOURCE_DIR}/tests/run_unittest.py
                 ${PROJECT_SOURCE_DIR}/tests/python ${PROJECT_BINARY_DIR}/test-results/report_python.xml)
# In a browser, where there is one.
add_test(NAME report_browser
         COMMAND ${DOORBELL_PYTHON} ${PROJECT_SOURCE_DIR}/tests/run_unittest.py
                 ${PROJECT_SOURCE_DIR}/tests/python/browser_test.py ${PROJECT_BINARY_DIR}/test-results/report_browser.xml)
set_tests_properties(report_browser PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 300
  ENVIRONMENT "DOORBELL_SCREENSHOTS=${PROJECT_BINARY_DIR}/screenshots;PYTHONDONTWRITEBYTECODE=1")
set_tests_properties(report_schema report_python PROPERTIES
  LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 300 FIXTURES_REQUIRED report_samples
  ENVIRONMENT "DOORBELL_TEST_OUT=${report_samples};PYTHONDONTWRITEBYTECODE=1")
