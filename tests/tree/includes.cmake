# includes.cmake: cmake -D ROOT=DIR -P includes.cmake: every include of a product folder points to
# its own room or downwards: base < kernels, outer, net < train < worker, coordinator < lab, and
# within a folder as the lists below say; nothing there includes tests or bench. The link lines of
# the libraries hold for what has a symbol; this holds for headers that have none, too.
cmake_minimum_required(VERSION 3.22)

set(base base)
set(base/chart base base/chart)
set(outer base outer)

# Within kernels: each backend stands on the shared declarations; `backends` lists them.
set(kernels base kernels)
set(kernels/ref ${kernels} kernels/ref)
set(kernels/cpu/isa ${kernels} kernels/cpu/isa)
set(kernels/cpu ${kernels/cpu/isa} kernels/cpu)
set(kernels/cuda/vendor ${kernels} kernels/cuda/vendor)
set(kernels/cuda/driver ${kernels/cuda/vendor} kernels/cuda/driver)
set(kernels/cuda/sizes ${kernels} kernels/cuda/sizes)
set(kernels/cuda ${kernels/cuda/driver} kernels/cuda/sizes kernels/cuda)
set(kernels/backends ${kernels} kernels/ref kernels/cpu kernels/backends)

# Within net: control documents, the all-reduce and the relay do no I/O, the mesh carries frames
# between peers, relay_server is a relay on sockets, for whom it may be run by.
set(net base net)
set(net/relay ${net} net/relay)
set(net/relay_server ${net/relay} net/relay_server)
set(net/portmap ${net} net/portmap)
set(net/http_server base net/http_server)
set(net/control ${net} net/control)
set(net/reduce ${net/control} net/reduce)
set(net/mesh ${net/reduce} net/relay net/mesh)

# Within train: tokens are made and published without a model, files know models and tokens, the memory plan knows
# the replica. No network.
set(train/text/tokenizer base train/text/tokenizer)
set(train/text/documents ${train/text/tokenizer} train/text/documents)
set(train/text/published ${train/text/tokenizer} train/text/published)
set(train/text/publish ${train/text/documents} train/text/published train/text/publish)
set(train/text ${train/text/publish} train/text)
set(train/model base kernels outer train/model)
set(train/files ${train/model} ${train/text} train/files)
set(train ${train/files} train)
set(train/participant ${train} train/participant)
set(train/memory ${train} train/memory)

# Within worker: each room works alone on state and net; the session joins them.
set(below_worker ${train/memory} train/participant ${net/mesh})
set(worker/round ${below_worker} worker/round)
set(worker/join ${below_worker} worker/join)
set(worker/state ${below_worker} worker/state)
set(worker/options ${worker/state} worker/allow worker/options)
set(worker/trainer ${worker/state} worker/trainer)
set(worker/transfer ${worker/state} worker/transfer)
set(worker/text ${worker/transfer} worker/text)
set(worker/audit ${worker/transfer} worker/audit)
set(worker/mesh ${worker/text} worker/audit worker/mesh)
set(worker/reach ${below_worker} worker/reach)
set(worker/own_relay base net net/relay_server worker/own_relay)
set(worker/local base base/chart net net/http_server worker/local)
set(worker/allow base worker/allow) # what a person allows: readings, settings and the time, nothing else
set(worker/sensors ${worker/allow} worker/sensors)
set(worker/session ${worker/mesh} net/portmap worker/allow worker/sensors worker/local worker/round worker/join worker/own_relay worker/reach worker/options worker/trainer worker/session)
set(worker/update base net ${net/control} worker/join worker/update)
set(worker/commands ${worker/session} worker/update worker/commands)
set(worker ${worker/commands} worker)

# Within coordinator: the core decides without I/O, the service keeps what it decides, people and
# programs ask the service.
set(below_coordinator ${base/chart} kernels outer net net/control net/relay)
set(coordinator/core ${below_coordinator} coordinator/core)
set(coordinator/store ${coordinator/core} coordinator/store)
set(coordinator/service ${coordinator/store} coordinator/service)
set(coordinator/backup ${coordinator/service} coordinator/backup)
set(coordinator/web ${coordinator/service} net/http_server net/relay_server ${train/text/published} coordinator/web)
set(coordinator/commands ${coordinator/web} coordinator/backup ${train/text/publish} coordinator/commands)
set(coordinator ${coordinator/commands} coordinator)

# Within lab: a run is trained by methods, options choose them; tables, sweeps and reports are about
# runs.
set(below_lab ${worker} ${coordinator/commands})
set(lab/model ${below_lab} lab/model)
set(lab/run ${lab/model} lab/run)
set(lab/methods ${lab/run} lab/methods)
set(lab/options ${lab/methods} lab/options)
set(lab/worker_files ${lab/methods} lab/worker_files)
set(lab/simulate ${below_lab} lab/simulate)
set(lab/report ${lab/options} lab/simulate lab/report)
set(lab/sweep ${lab/report} lab/sweep)
set(lab/inspect ${lab/report} lab/worker_files lab/inspect)
set(lab/data ${lab/inspect} lab/data)
set(lab/commands ${lab/data} lab/sweep lab/commands)
set(lab ${lab/commands} lab)

# The deepest folder with a law that `path` is in, or `path` itself where it has a law of its own.
function(folder_of path out)
	set(folder ${path})
	while(NOT DEFINED "${folder}" AND folder MATCHES "/")
		string(REGEX REPLACE "/[^/]*$" "" folder "${folder}")
	endwhile()
	set(${out} "${folder}" PARENT_SCOPE)
endfunction()

set(n 0)
set(wrong "")
foreach(top base kernels outer net train worker coordinator lab)
	file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.c ${ROOT}/${top}/*.h ${ROOT}/${top}/*.cu ${ROOT}/${top}/*.cuh)
	foreach(file ${files})
		folder_of(${file} folder)
		file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]+\"[^\"]*/")
		foreach(line ${lines})
			math(EXPR n "${n} + 1")
			string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1" included "${line}")
			folder_of(${included} target)
			if(NOT target IN_LIST ${folder})
				set(allowed ${${folder}})
				list(REMOVE_DUPLICATES allowed)
				list(JOIN allowed ", " allowed)
				list(APPEND wrong "  ${file} includes \"${included}\": ${folder} may include ${allowed}")
			endif()
		endforeach()
	endforeach()
endforeach()

if(wrong)
	list(JOIN wrong "\n" wrong)
	message(FATAL_ERROR "includes that point upwards or sideways:\n${wrong}")
endif()
if(n EQUAL 0)
	message(FATAL_ERROR "${ROOT}: no include found")
endif()
message(STATUS "${n} includes, all downwards")
