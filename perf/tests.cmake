# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# ---- the key sets ------------------------------------------------------------

find_package(GTest REQUIRED)
add_executable(
  kindex_generator_tests "${PROJECT_SOURCE_DIR}/unit_tests/test_generators.cpp"
                         StringSequenceTests.cpp)
target_link_libraries(kindex_generator_tests PRIVATE kindex_perf_data
                                                     GTest::gtest_main)
kindex_use_runtime(kindex_generator_tests)
add_test(NAME perf.generators COMMAND kindex_generator_tests)
set_tests_properties(perf.generators PROPERTIES LABELS perf)

# ---- the program, on sets so small that it takes seconds -----------------------

set(smoke_environment OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive OMP_PROC_BIND=false)
function(kindex_add_smoke name)
  add_test(NAME perf.${name} COMMAND ${ARGN})
  set_tests_properties(perf.${name} PROPERTIES LABELS perf TIMEOUT 600
                                               ENVIRONMENT
                                               "${smoke_environment}")
endfunction()

set(tiny --queries 300 --benchmark_min_time=0.001)
set(every_operation --index all --ops
    build,build_sorted,fit,update,find,ref_find,parent_chain,lower_bound,count,range
)

# Every key type of this build, value and operation of every index is verified.
set(every_type)
foreach(type IN LISTS Kindex_PERF_KEY_TYPES)
  list(APPEND every_type --keys uniform:${type}:5000)
endforeach()
kindex_add_smoke(
  every_type kindex_bench ${every_type} ${tiny} ${every_operation} --values
  none,u64 --hit-rate 0.5
  --benchmark_filter=build|update|find|chain|lower_bound|count|range)

# Sets with equal keys, other orders, and the way to the device.
kindex_add_smoke(
  orders kindex_bench --keys wiki:u64:20000 --keys uniform:u8:70000
  ${tiny} ${every_operation} --order zipf:0.99 --transfers in
  --range-hits 3 --values u32)
foreach(order IN ITEMS normal gamma)
  kindex_add_smoke(
    ${order}_order kindex_bench --keys uniform:u64:20000 --keys uniform:u8:7
    ${tiny} --ops find,range --order ${order})
endforeach()
kindex_add_smoke(sorted_order kindex_bench --keys osm:u64:1 --keys
                 fb:u64:30 ${tiny} ${every_operation} --order sorted --sweep)

# Strings have indexes and operations of their own.
set(strings)
foreach(generator IN ITEMS words urls uuids)
  list(APPEND strings --keys ${generator}:str:5000)
endforeach()
set(ask_strings ${tiny} --ops build,find,ref_find,lower_bound --values none,u32)
kindex_add_smoke(
  strings kindex_bench ${strings} ${ask_strings} --hit-rate 0.5 --json
  "${CMAKE_CURRENT_BINARY_DIR}/strings.json")
set_tests_properties(perf.strings PROPERTIES FIXTURES_SETUP perf_strings)
kindex_add_smoke(strings_in_order kindex_bench --keys words:str:1 --keys
                 urls:str:30 ${ask_strings} --order sorted)
kindex_add_smoke(popular_strings kindex_bench ${strings} ${ask_strings} --order
                 zipf:0.99)

kindex_add_smoke(list kindex_bench --list --keys dense:u32:2^20)
set_tests_properties(
  perf.list PROPERTIES PASS_REGULAR_EXPRESSION
                       "find/sorted_array/u32/[A-Za-z]+/n:1048576/keys:dense")

# Several lengths of ranges, and how many of them.
kindex_add_smoke(
  range_hits kindex_bench --keys wiki:u32:20000 ${tiny} --ops range --range-hits
  1,2^6 --range-queries 50 --index sorted_array --values u32)
set_tests_properties(
  perf.range_hits
  PROPERTIES PASS_REGULAR_EXPRESSION "hits:1/q:50/.*hits:64/q:50/"
             FAIL_REGULAR_EXPRESSION "FAILED")
# Batches in host memory, on GPUs, of the indexes that take them.
kindex_add_smoke(
  host_memory kindex_bench --keys uniform:u64:20000 ${tiny} --ops
  find,lower_bound,range,divide --transfers overlapped,direct --bucket-size 0,100
  --buffers 1,3 --range-hits 1,32 --values none,u32)
# A sweep without a value, before other options and behind them.
kindex_add_smoke(
  sweep kindex_bench --sweep --list --keys dense:u32:2^20 --index sorted_array
  --queries 5000)
set_tests_properties(perf.sweep PROPERTIES PASS_REGULAR_EXPRESSION
                                           "q:256/.*q:1024/.*q:4096/")
kindex_add_smoke(zero_range_hits kindex_bench --range-hits 16,0 --list)
set_tests_properties(perf.zero_range_hits PROPERTIES PASS_REGULAR_EXPRESSION
                                                     "range-hits")

# Ablations are there only where asked for, twice.
kindex_add_smoke(all_without_ablations kindex_bench --list --index all)
set_tests_properties(perf.all_without_ablations
                     PROPERTIES FAIL_REGULAR_EXPRESSION "[+]|_k[0-9]")
if(Kindex_PERF_ABLATIONS)
  set(ablated)
  foreach(type IN ITEMS u32 u64)
    if(type IN_LIST Kindex_PERF_KEY_TYPES)
      list(APPEND ablated --keys wiki:${type}:20000)
    endif()
  endforeach()
  set(ask_ablations kindex_bench ${ablated} --queries 3000
                    --benchmark_min_time=0.001 --index ablations)
  kindex_add_smoke(ablations ${ask_ablations} --ops
                   find,lower_bound,range,for_each_in_range --values none,u32
                   --hit-rate 0.5)
  kindex_add_smoke(ablations_of_sorted_queries ${ask_ablations} --ops
                   lower_bound --order sorted)
  kindex_add_smoke(one_ablation kindex_bench --list --keys uniform:u32:5000
                   --index sorted_array+team_sorted --ops lower_bound)
  set_tests_properties(
    perf.one_ablation
    PROPERTIES PASS_REGULAR_EXPRESSION "lower_bound/sorted_array[+]team_sorted/"
               FAIL_REGULAR_EXPRESSION "sorted_array/|pinned")
else()
  kindex_add_smoke(refuses_ablations kindex_bench --index ablations)
  set_tests_properties(perf.refuses_ablations
                       PROPERTIES PASS_REGULAR_EXPRESSION
                                  "no 'ablations' in this build")
endif()

foreach(case IN ITEMS "keys=nonsense:u32:10=no generator 'nonsense'"
                      "index=nonsense=no 'nonsense' in this build"
                      "space=nonsense=no 'nonsense' in this build"
                      "ops=nonsense=no 'nonsense'"
                      "epsilons=2^21=--epsilons: 2.21 is not in 1...1048576"
                      "order=zipf:x=zipf:THETA"
                      "sweep=nonsense=--sweep: there is no 'nonsense'"
                      "transfers=nonsense=no 'nonsense'")
  string(REGEX MATCH "^([a-z]+)=([^=]+)=(.*)$" case "${case}")
  kindex_add_smoke(refuses_${CMAKE_MATCH_1} kindex_bench --${CMAKE_MATCH_1}
                   ${CMAKE_MATCH_2})
  set_tests_properties(perf.refuses_${CMAKE_MATCH_1}
                       PROPERTIES PASS_REGULAR_EXPRESSION "${CMAKE_MATCH_3}")
endforeach()

# What would waste or lose the results of a long run ends it before it measures.
function(kindex_add_refusal name sentence)
  kindex_add_smoke(
    refuses_${name} sh -c [["$@" || echo "exit status $?"]] sh
    $<TARGET_FILE:kindex_bench> --keys dense:u8:200 --queries 300
    --benchmark_min_time=0.001 ${ARGN})
  set_tests_properties(
    perf.refuses_${name}
    PROPERTIES PASS_REGULAR_EXPRESSION "${sentence}.*exit status 2"
               FAIL_REGULAR_EXPRESSION "# .1/")
endfunction()

set(here "${CMAKE_CURRENT_BINARY_DIR}")
kindex_add_refusal(report_named_as_its_json "is the file that the JSON"
                   --report "${here}/refused.json")
kindex_add_refusal(json_named_as_the_report "is the file that the JSON" --json
                   "${here}/refused" --report "${here}/../perf/./refused")
kindex_add_refusal(unwritable_report "report: .*cannot be opened" --json
                   "${here}/refused.json" --report "${here}/no/such/r.html")
kindex_add_refusal(unwritable_json "json: .*cannot be opened" --json
                   "${here}/no/such/r.json")
kindex_add_refusal(malformed_filter "is not a regular expression"
                   "--benchmark_filter=(")
kindex_add_refusal(negated_malformed_filter "is not a regular expression"
                   "--benchmark_filter=-(")
kindex_add_refusal(negative_seed "'-1' is not a whole number" --seed -1)
kindex_add_refusal(large_seed "is not a whole number" --seed
                   18446744073709551616)

kindex_add_refusal(strings_as_numbers "write words:str:10" --keys words:u64:10)
kindex_add_refusal(numbers_as_strings "generators of strings are words" --keys
                   uniform:str:10)
kindex_add_refusal(ranges_of_strings "nothing .* is measured on strings" --keys
                   words:str:10 --ops range)

# A filter that matches nothing is no error, but does not go unsaid.
kindex_add_smoke(empty_filter kindex_bench ${tiny} --benchmark_filter=nonsense)
set_tests_properties(
  perf.empty_filter PROPERTIES PASS_REGULAR_EXPRESSION
                               "match any benchmarks .*nonsense")

# Dense sets leave no room for keys that miss.
kindex_add_smoke(
  hit_rate_warning kindex_bench --keys dense:u8:256 ${tiny} --ops find
  --hit-rate 0 --benchmark_filter=find)
set_tests_properties(
  perf.hit_rate_warning
  PROPERTIES PASS_REGULAR_EXPRESSION
             "WARNING: --hit-rate 0 was asked for, but with these keys 1 of")

# A wrong answer is noticed, named, and fails the run.
add_executable(kindex_wrong_answers_test WrongAnswers.cpp BuildPhases.cpp
                                         Session.cpp Limits.cpp)
target_link_libraries(kindex_wrong_answers_test
                      PRIVATE kindex_perf_data benchmark::benchmark
                              GTest::gtest)
kindex_use_runtime(kindex_wrong_answers_test)
add_test(NAME perf.wrong_answers COMMAND kindex_wrong_answers_test)
set_tests_properties(perf.wrong_answers
                     PROPERTIES LABELS perf ENVIRONMENT "${smoke_environment}")

# ---- results and reports -----------------------------------------------------

kindex_add_smoke(
  json kindex_bench --keys isbn:u64:10000 ${tiny} --values none,u32 --ops
  build,build_sorted,fit,update,find,ref_find,parent_chain,lower_bound,range
  --json
  "${CMAKE_CURRENT_BINARY_DIR}/smoke.json")
set_tests_properties(perf.json PROPERTIES FIXTURES_SETUP perf_json)
find_program(Kindex_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(Kindex_PYTHON)
  execute_process(
    COMMAND "${Kindex_PYTHON}" -c "import matplotlib"
    RESULT_VARIABLE no_matplotlib
    OUTPUT_QUIET ERROR_QUIET)
  kindex_add_smoke(
    json_is_complete "${Kindex_PYTHON}"
    "${CMAKE_CURRENT_SOURCE_DIR}/check_json.py"
    "${CMAKE_CURRENT_BINARY_DIR}/smoke.json")
  set_tests_properties(perf.json_is_complete PROPERTIES FIXTURES_REQUIRED
                                                        perf_json)
  kindex_add_smoke(
    json_of_strings_is_complete "${Kindex_PYTHON}"
    "${CMAKE_CURRENT_SOURCE_DIR}/check_json.py"
    "${CMAKE_CURRENT_BINARY_DIR}/strings.json" build find ref_find lower_bound)
  set_tests_properties(perf.json_of_strings_is_complete
                       PROPERTIES FIXTURES_REQUIRED perf_strings)
endif()
if(Kindex_PYTHON AND NOT no_matplotlib)
  kindex_add_smoke(
    report_of_ablations "${Kindex_PYTHON}"
    "${CMAKE_CURRENT_SOURCE_DIR}/check_report.py")
  kindex_add_smoke(
    report kindex_bench --keys normal:u64:10000 ${tiny} --report
    "${CMAKE_CURRENT_BINARY_DIR}/report.html")
endif()
