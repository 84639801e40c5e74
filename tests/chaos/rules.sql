-- What must hold in the database when no work is under way, and mostly always. Each query finds the ids of the rows that break its
-- rule, which stands above it: letter of the check (reliability, the checker), then the violation in words.

-- a: a task without parameters or without history
SELECT t.id FROM workqueues_task t LEFT JOIN workqueues_taskparams p ON p.task_id = t.id
WHERE p.task_id IS NULL OR NOT EXISTS (SELECT 1 FROM workqueues_taskchange c WHERE c.task_id = t.id);

-- b: an input file of an ended task is in no final state
SELECT f.id FROM workqueues_file f JOIN workqueues_task t ON t.id = f.task_id JOIN workqueues_dataset d ON d.id = f.dataset_id
WHERE t.status IN ('done', 'finished', 'failed') AND f.type IN ('input', 'pseudo_input') AND d.master_id IS NULL
  AND f.status NOT IN ('finished', 'failed', 'lost', 'missing', 'broken');

-- b: a file was used twice
SELECT file_id FROM brokerage_jobinput WHERE tracked AND status = 'used' AND event_range_id IS NULL
GROUP BY file_id HAVING count(*) > 1;

-- b: a file has two live jobs
SELECT file_id FROM brokerage_jobinput WHERE tracked AND status = 'live' AND event_range_id IS NULL
GROUP BY file_id HAVING count(*) > 1;

-- b: a file is finished without a use, or used without being finished
SELECT f.id FROM workqueues_file f
LEFT JOIN (SELECT DISTINCT file_id FROM brokerage_jobinput WHERE tracked AND status = 'used') u ON u.file_id = f.id
WHERE f.type IN ('input', 'pseudo_input', 'random_seed') AND f.keep_track AND (f.status = 'finished') <> (u.file_id IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id);

-- b: a file is running without a live job, or has one without running
SELECT f.id FROM workqueues_file f
LEFT JOIN (SELECT DISTINCT file_id FROM brokerage_jobinput WHERE tracked AND status = 'live') l ON l.file_id = f.id
WHERE f.type IN ('input', 'pseudo_input', 'random_seed') AND f.keep_track AND (f.status = 'running') <> (l.file_id IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id);

-- b: an event of a file is in two uses that are live or successful
SELECT DISTINCT a.file_id FROM workqueues_eventrange a JOIN brokerage_jobinput i ON i.event_range_id = a.id
JOIN workqueues_eventrange b ON b.file_id = a.file_id AND b.id > a.id
    AND b.def_min_event_id <= a.def_max_event_id AND a.def_min_event_id <= b.def_max_event_id
JOIN brokerage_jobinput k ON k.event_range_id = b.id
WHERE i.status IN ('live', 'used') AND k.status IN ('live', 'used');

-- b: a file that jobs share is finished without a use of each event, or not finished with one
SELECT f.id FROM workqueues_file f JOIN (
    SELECT r.file_id, sum((r.def_max_event_id - r.def_min_event_id + 1) * (i.status = 'used')::int) AS used
    FROM workqueues_eventrange r LEFT JOIN brokerage_jobinput i ON i.event_range_id = r.id GROUP BY r.file_id) u ON u.file_id = f.id
WHERE f.status NOT IN ('lost', 'broken') AND (f.status = 'finished') <> (COALESCE(u.used, 0) = f.n_events);

-- e: an input of a job is not in the state that the job's end implies
SELECT DISTINCT j.id FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id
WHERE i.status <> CASE WHEN j.status = 'finished' THEN 'used' WHEN j.ended_at IS NOT NULL THEN 'returned' ELSE 'live' END;

-- e: an output of a job is not in the state that the job's end implies
SELECT DISTINCT j.id FROM brokerage_job j JOIN workqueues_file f ON f.out_job_id = j.id
WHERE NOT (f.type IN ('log', 'trn_log') AND f.status = 'finished' AND j.ended_at IS NOT NULL)  -- also a job that fails leaves its log
  AND f.status <> CASE WHEN j.status = 'finished' THEN 'finished' WHEN j.ended_at IS NOT NULL THEN 'failed' ELSE 'running' END;

-- e: an ended job without result, or a result of a job that has not ended
SELECT j.id FROM brokerage_job j LEFT JOIN brokerage_jobresult r ON r.job_id = j.id
WHERE (j.ended_at IS NOT NULL) <> (r.job_id IS NOT NULL);

-- e: a finished output is not in the catalogue as it was reported, with a copy
SELECT f.id FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
LEFT JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name
LEFT JOIN workqueues_cataloguefile c ON c.dataset_id = cd.id AND c.lfn = f.lfn
WHERE f.out_job_id IS NOT NULL AND f.status = 'finished' AND NOT f.no_output
  AND (c.id IS NULL OR c.fsize <> f.fsize OR c.checksum <> f.checksum
       OR NOT EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.state = 'available'));

-- e: a file is on its way though its job does not wait for that, or the other way round
SELECT c.id FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset cd ON cd.id = c.dataset_id
JOIN workqueues_dataset d ON d.dataset_name = cd.name AND d.type IN ('output', 'log')
JOIN workqueues_file f ON f.dataset_id = d.id AND f.lfn = c.lfn JOIN brokerage_job j ON j.id = f.out_job_id
WHERE c.moving <> (j.status = 'transferring')
  AND EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id);  -- one that was withdrawn has no copy left

-- e: a wish is open whose transfer is over
SELECT w.id FROM brokerage_transferwish w JOIN brokerage_transfer t ON t.id = w.transfer_id
WHERE w.closed_at IS NULL AND t.ended_at IS NOT NULL;

-- e: a transfer that is done left no copy, and nobody removed one
SELECT t.id FROM brokerage_transfer t WHERE t.status = 'done'
  AND NOT EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = t.file_id AND r.storage = t.destination)
  AND NOT EXISTS (SELECT FROM brokerage_replicachange x
      WHERE x.file_id = t.file_id AND x.storage = t.destination AND x.what IN ('removed', 'lost'));

-- e: a file is brought to a place twice at once
SELECT min(id) FROM brokerage_transfer WHERE ended_at IS NULL GROUP BY file_id, destination HAVING count(*) > 1;

-- e: the catalogue has a file of an output dataset that no finished job made
SELECT DISTINCT c.id FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset cd ON cd.id = c.dataset_id
JOIN workqueues_dataset d ON d.dataset_name = cd.name AND d.type IN ('output', 'log')
WHERE NOT EXISTS (SELECT 1 FROM workqueues_file f WHERE f.dataset_id = d.id AND f.lfn = c.lfn AND f.status = 'finished')
  AND EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id);

-- f: a final job with a lease, or a holder without an end of lease
SELECT id FROM brokerage_job
WHERE (ended_at IS NOT NULL AND (lease_until IS NOT NULL OR lease_holder IS NOT NULL)) OR (lease_until IS NULL) <> (lease_holder IS NULL);

-- g: more tries than allowed
SELECT id FROM workqueues_file WHERE attempt_nr > max_attempt OR failed_attempt > max_failure OR failed_attempt > attempt_nr;

-- g: the number of tries is not the number of ended uses
SELECT f.id FROM workqueues_file f
LEFT JOIN (SELECT i.file_id, count(*) AS n FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
           WHERE i.tracked AND i.status <> 'live' AND j.sub_status <> 'storage_down' GROUP BY i.file_id) u ON u.file_id = f.id
WHERE f.type IN ('input', 'pseudo_input', 'random_seed') AND f.keep_track AND f.attempt_nr <> COALESCE(u.n, 0)
  AND NOT EXISTS (SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id);

-- g: the number of failures is not the number of failed jobs
SELECT f.id FROM workqueues_file f
LEFT JOIN (SELECT i.file_id, count(*) AS n FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
           WHERE i.tracked AND j.status = 'failed' GROUP BY i.file_id) u ON u.file_id = f.id
WHERE f.type IN ('input', 'pseudo_input', 'random_seed') AND f.keep_track AND f.failed_attempt <> COALESCE(u.n, 0)
  AND NOT EXISTS (SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id);

-- g: two uses of a file have the same number
SELECT i.file_id FROM brokerage_jobinput i JOIN brokerage_job j ON j.id = i.job_id
WHERE i.tracked AND i.event_range_id IS NULL AND j.sub_status <> 'storage_down'
GROUP BY i.file_id HAVING count(DISTINCT i.attempt_nr) <> count(*);

-- g: a retry does not lead from an ended job to a later one of its task
SELECT h.id FROM brokerage_jobretryhistory h
LEFT JOIN brokerage_job o ON o.id = h.old_job_id LEFT JOIN brokerage_job n ON n.id = h.new_job_id
WHERE o.id IS NULL OR n.id IS NULL OR o.ended_at IS NULL OR o.id >= n.id OR o.task_id <> n.task_id OR o.task_id <> h.task_id;

-- g: the origin of a retry is a retry itself
SELECT h.id FROM brokerage_jobretryhistory h
WHERE EXISTS (SELECT 1 FROM brokerage_jobretryhistory o WHERE o.new_job_id = h.origin_job_id);

-- g: a file was tried again without a row that says after which job
SELECT i.id FROM brokerage_jobinput i JOIN workqueues_file f ON f.id = i.file_id
WHERE i.tracked AND i.attempt_nr > 0 AND f.type IN ('input', 'pseudo_input')
  -- a file that a finish gave up has used up its tries without a job, should the task be told to retry later
  AND EXISTS (SELECT 1 FROM brokerage_jobinput o WHERE o.file_id = i.file_id AND o.tracked AND o.job_id < i.job_id)
  AND NOT EXISTS (
    SELECT 1 FROM brokerage_jobretryhistory h JOIN brokerage_jobinput p ON p.job_id = h.old_job_id
    WHERE h.new_job_id = i.job_id AND p.file_id = i.file_id);

-- h: the end of a task does not follow from its files
SELECT t.id FROM workqueues_task t JOIN workqueues_dataset d ON d.task_id = t.id JOIN workqueues_file f ON f.dataset_id = d.id
WHERE t.status IN ('done', 'finished', 'failed') AND t.parent_tid = t.id AND d.type IN ('input', 'pseudo_input')
  AND d.master_id IS NULL AND NOT d.excluded AND f.status NOT IN ('lost', 'broken')
GROUP BY t.id HAVING t.status <> CASE WHEN bool_and(f.status = 'finished') THEN 'done'
                                      WHEN bool_or(f.status = 'finished' OR EXISTS (
                                          SELECT 1 FROM workqueues_eventrange r WHERE r.file_id = f.id AND r.status = 'done'))
                                      THEN 'finished' ELSE 'failed' END;

-- h: an ended task has a job that has not
SELECT DISTINCT t.id FROM workqueues_task t JOIN brokerage_job j ON j.task_id = t.id
WHERE t.ended_at IS NOT NULL AND j.ended_at IS NULL;

-- i: a job without a decision of its task to assign it
SELECT j.id FROM brokerage_job j LEFT JOIN brokerage_jobspec s ON s.job_id = j.id
LEFT JOIN brokerage_decision x ON x.id = s.decision_id AND x.task_id = j.task_id AND x.outcome = 'assign'
WHERE x.id IS NULL AND j.kind <> 4;  -- a job that merges runs where the others ran

-- k: counters of a dataset are not those of its files
SELECT d.id FROM workqueues_dataset d LEFT JOIN workqueues_file f ON f.dataset_id = d.id GROUP BY d.id
HAVING d.n_files_finished <> count(f.id) FILTER (WHERE f.status = 'finished')
    OR d.n_files_failed <> count(f.id) FILTER (WHERE f.status = 'failed')
    OR d.n_files <> count(f.id) FILTER (WHERE d.type IN ('input', 'pseudo_input', 'random_seed') OR f.status <> 'failed')
    OR d.n_files_used <> count(f.id) FILTER (WHERE d.type NOT IN ('input', 'pseudo_input', 'random_seed')
                                                OR f.status IN ('picked', 'running', 'finished', 'failed'));
