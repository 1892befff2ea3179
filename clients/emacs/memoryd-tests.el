;;; memoryd-tests.el --- Tests of memoryd.el  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Run by tests/e2e/test_emacs.py in batch mode.  The tests tagged `daemon'
;; want a daemon whose notes are in $NOTES, the others want none.

;;; Code:

(require 'ert)
(require 'memoryd)

(defun memoryd-tests--note (path)
  "Return the file at PATH among the notes."
  (expand-file-name path (getenv "NOTES")))

(defmacro memoryd-tests--choosing (choose &rest body)
  "Run BODY where completion is answered by CHOOSE, of the table and the names."
  (declare (indent 1))
  `(let ((completing-read-function
          (lambda (_prompt table &rest _)
            (funcall ,choose table (all-completions "" table)))))
     ,@body))

(ert-deftest memoryd-search-jumps-to-the-line ()
  :tags '(daemon)
  (memoryd-tests--choosing (lambda (_table names) (car names))
    (memoryd-search "systemd timers"))
  (should (equal buffer-file-name (memoryd-tests--note "memory/a long name.md")))
  (should (equal (line-number-at-pos) 41))
  (should (looking-at "We replaced the cron jobs")))

(ert-deftest memoryd-workspace-served-since-a-reload-is-found ()
  :tags '(daemon)
  (setq memoryd--roots (list (memoryd--live-connection) '("other" . "/elsewhere")))
  (memoryd-tests--choosing (lambda (_table names) (car names))
    (memoryd-search "systemd timers"))
  (should (equal buffer-file-name (memoryd-tests--note "memory/a long name.md"))))

(ert-deftest memoryd-hits-are-offered-best-first-with-what-they-say ()
  :tags '(daemon)
  (memoryd-tests--choosing
      (lambda (table names)
        (let* ((metadata (completion-metadata "" table nil))
               (annotate (completion-metadata-get metadata 'annotation-function)))
          (should (eq (completion-metadata-get metadata 'category) 'memoryd-hit))
          (should (eq (completion-metadata-get metadata 'display-sort-function) #'identity))
          (should (string-prefix-p "memory/a long name.md#L" (car names)))
          (should (> (length names) 1))
          (should (string-match-p "\\`  [01]\\.[0-9][0-9]  .*systemd timers"
                                  (funcall annotate (car names)))))
        (car names))
    (memoryd-search "systemd timers")))

(ert-deftest memoryd-notes-in-any-script-are-found-whole ()
  :tags '(daemon)
  (let ((hit (car (memoryd-hits "灯台の霧"))))
    (should (equal (plist-get hit :path) "memory/日本.md"))
    (should (string-match-p "灯台は霧の中" (plist-get hit :snippet)))
    (should (equal (cdr (memoryd--best-line hit)) "灯台は霧の中。😀 灯台。"))))

(ert-deftest memoryd-empty-answer-says-why ()
  :tags '(daemon)
  (let* ((memoryd-min-score 1)
         (err (should-error (memoryd-search "zzzz") :type 'user-error)))
    (should (string-prefix-p "Nothing found: " (cadr err)))))

(ert-deftest memoryd-refusal-says-why-and-what-to-do ()
  :tags '(daemon)
  (let ((err (should-error (memoryd-request :search '(:query "x" :limt 3)) :type 'user-error)))
    (should (string-match-p "did you mean 'limit'" (cadr err)))
    (should (string-match-p " → " (cadr err)))))

(ert-deftest memoryd-status-says-how-it-is ()
  :tags '(daemon)
  (let ((lines (memoryd-status-lines)))
    (should (string-match-p "\\`memoryd .*: ok\\'" (car lines)))
    (should (string-match-p (regexp-quote (getenv "NOTES")) (cadr lines)))))

(ert-deftest memoryd-connection-is-kept-and-made-anew-when-lost ()
  :tags '(daemon)
  (memoryd-status-lines)
  (let ((connection memoryd--connection))
    (memoryd-status-lines)
    (should (eq connection memoryd--connection))
    (delete-process (jsonrpc--process connection))
    (memoryd-status-lines)
    (should-not (eq connection memoryd--connection))))

(ert-deftest memoryd-restarted-daemon-is-not-noticed ()
  :tags '(restart)
  (memoryd-status-lines)
  (should (zerop (call-process (getenv "RESTART"))))
  (should (string-match-p "\\`memoryd " (car (memoryd-status-lines)))))

(ert-deftest memoryd-notes-are-in-no-log ()
  :tags '(daemon)
  (memoryd-hits "systemd timers")
  (dolist (buffer (buffer-list))
    (when (string-match-p "memoryd.*events" (buffer-name buffer))
      (with-current-buffer buffer
        (should-not (string-match-p "systemd" (buffer-string)))))))

(ert-deftest memoryd-no-daemon-is-told-with-the-remedy ()
  :tags '(absent)
  (let ((err (should-error (memoryd-search "anything") :type 'user-error)))
    (should (string-match-p "No memoryd daemon is listening on" (cadr err)))
    (should (string-match-p "memoryd run" (cadr err)))))

(ert-deftest memoryd-socket-is-where-the-daemon-has-it ()
  :tags '(absent)
  (let ((process-environment
         (append '("MEMORYD_PATHS__SOCKET" "XDG_RUNTIME_DIR=/r") process-environment)))
    (should (equal (memoryd-socket-path) "/r/memoryd/memoryd.sock")))
  (let ((process-environment (cons "MEMORYD_PATHS__SOCKET=/s" process-environment)))
    (should (equal (memoryd-socket-path) "/s")))
  (let ((memoryd-socket "/t"))
    (should (equal (memoryd-socket-path) "/t"))))

(provide 'memoryd-tests)
;;; memoryd-tests.el ends here
