"""Tasks as users write them, one of each kind; each call gives a fresh copy."""

from __future__ import annotations

from typing import Any

Params = dict[str, Any]


def generation() -> Params:
    """Production without input: 40 jobs of 250 events, own seed and number each."""
    return {
        "taskName": "mc26.gen.boson",
        "userName": "mcteam",
        "vo": "atlas",
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "evgen",
        "taskPriority": 600,
        "architecture": "x86_64-el9",
        "transUses": "Gen-3.1",
        "transHome": None,
        "transPath": "generate.py",
        "ramCount": 1900,
        "ramUnit": "MBPerCore",
        "cloud": "WORLD",
        "noInput": True,
        "nEvents": 10_000,
        "nEventsPerJob": 250,
        "maxAttempt": 5,
        "log": template("log", "mc26.gen.boson.log", "mc26.gen.boson.log.${SN}.tgz"),
        "jobParameters": [
            constant("--energy 13600 --card boson.cfg"),
            {"type": "template", "param_type": "number", "value": "--seed ${RNDMSEED}", "offset": 4000},
            {"type": "template", "param_type": "number", "value": "--events ${MAXEVENTS}"},
            template("pseudo_input", "seq_number", "--run ${SEQNUMBER}"),
            {**template("output", "mc26.gen.boson.EVT", "--out=mc26.gen.boson.EVT.${SN}.root"), "token": "DATADISK"},
        ],
    }


def processing() -> Params:
    """Production with one input dataset, two files a job."""
    return {
        "taskName": "mc26.reco.boson",
        "userName": "mcteam",
        "vo": "atlas",
        "prodSourceLabel": "managed",
        "taskType": "prod",
        "processingType": "reco",
        "taskPriority": 500,
        "architecture": None,
        "transUses": "Reco-3.1",
        "transHome": None,
        "transPath": "reconstruct.py",
        "coreCount": 8,
        "nFilesPerJob": 2,
        "log": template("log", "mc26.reco.boson.log", "mc26.reco.boson.log.${SN}.tgz"),
        "jobParameters": [
            template("input", "mc26.gen.boson.EVT", "--in ${IN/L}"),
            template("output", "mc26.reco.boson.AOD", "--out=mc26.reco.boson.AOD.${SN}.root"),
        ],
    }


def pile_up() -> Params:
    """As processing, with two secondary datasets: background used cyclically, and one that every job gets whole."""
    task = processing()
    task["jobParameters"][1:1] = [
        {**template("input", "minbias.soft", "--low ${LOW/L}"), "ratio": 2, "attributes": "repeat", "expand": True},
        {**template("input", "conditions.v9", "--db ${DBF}"), "attributes": "repeat,nosplit"},
    ]
    return {**task, "goal": 98, "useExhausted": True, "cpuTime": 300, "cpuTimeUnit": "HS06sPerEvent", "nFilesPerJob": 1}


def analysis() -> Params:
    """User analysis with container input, jobs by size, a build and merging."""
    return {
        "taskName": "user.eve.spectrum/",
        "userName": "eve",
        "vo": "atlas",
        "prodSourceLabel": "user",
        "taskType": "anal",
        "processingType": "client-run",
        "taskPriority": 1000,
        "architecture": "",
        "transUses": "",
        "transHome": None,
        "uniqueTaskName": True,
        "nGBPerJob": 8,
        "nMaxFilesPerJob": 50,
        "sourceURL": "https://sources.example.org",
        "mergeOutput": True,
        "buildSpec": {"archiveName": "sources.11bb.tar.gz"},
        "mergeSpec": {"useLocalIO": 1},
        "log": template("log", "user.eve.spectrum.log/", "user.eve.spectrum.log.$JEDITASKID.${SN}.log.tgz"),
        "jobParameters": [
            constant("--sourceURL ${SURL} -r . -l ${LIB}"),
            {**constant('-p "'), "padding": False},
            {**constant("./run.sh"), "padding": False},
            constant('"'),
            {**template("input", "data26.periodA.AOD/", '-i "${IN/T}"'), "expand": True, "exclude": r"\.bad$"},
            {**template("output", "user.eve.spectrum_h.root/", "user.eve.$JEDITASKID.${SN/P}.h.root"), "hidden": True},
            constant("-o \"{'h.root': '${OUTPUT0}'}\""),
        ],
    }


def event_service() -> Params:
    """Event service with jumbo jobs."""
    task = processing()
    task["jobParameters"].append({**constant("--eventService=True"), "es_only": True})
    return {
        **task,
        "coreCount": 0,
        "nFilesPerJob": 1,
        "nEventsPerInputFile": 1000,
        "nEventsPerJob": 500,
        "nEventsPerWorker": 10,
        "nEsConsumers": 2,
        "nJumboJobs": 4,
        "inFilePosEvtNum": True,
        "esmergeSpec": {"transPath": "merge.py"},
    }


def constant(value: str) -> Params:
    """A constant item."""
    return {"type": "constant", "value": value}


def template(kind: str, dataset: str, value: str) -> Params:
    """A template item with a dataset."""
    return {"type": "template", "param_type": kind, "dataset": dataset, "value": value}
