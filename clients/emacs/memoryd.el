;;; memoryd.el --- Search a markdown memory by words and meaning  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT
;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1") (jsonrpc "1.0.14"))
;; Keywords: convenience, matching

;;; Commentary:

;; memoryd is a daemon that keeps markdown notes searchable, by their words
;; and by their meaning.  This package asks it over its Unix socket:
;;
;;   M-x memoryd-search   search, choose one of the hits, jump to its line
;;   M-x memoryd-status   tell how the daemon is
;;
;; The daemon must be running: `memoryd run' in a terminal, or its service.

;;; Code:

(require 'jsonrpc)
(require 'subr-x)
(require 'thingatpt)

(declare-function pulse-momentary-highlight-one-line "pulse")

(defgroup memoryd nil
  "Search a markdown memory by words and meaning."
  :group 'convenience
  :prefix "memoryd-")

(defcustom memoryd-socket nil
  "Where the daemon listens, or nil for where it does by default.
The environment variable MEMORYD_PATHS__SOCKET is heeded; the
daemon's configuration file is not read."
  :type '(choice (const :tag "As by default" nil) file))

(defcustom memoryd-limit 20
  "How many hits to offer at most."
  :type 'integer)

(defcustom memoryd-min-score nil
  "Leave out hits that score less, from 0 to 1; nil for the daemon's setting."
  :type '(choice (const :tag "As the daemon is set" nil) number))

(defcustom memoryd-scope nil
  "Who asks: user:ID, agent:ID or session:ID; nil to see everything."
  :type '(choice (const :tag "Everything" nil) string))

(defcustom memoryd-timeout 30
  "Seconds that the daemon may take to answer."
  :type 'number)

(defvar memoryd-search-history nil
  "What was searched for.")

(defvar memoryd--connection nil
  "The connection to the daemon, alive or dead, or nil.")

(defvar memoryd--roots nil
  "The connection and an alist of the workspaces that its daemon serves.")

(defun memoryd-socket-path ()
  "Return where the daemon listens, by the daemon's own rules for its default."
  (let ((absolute (lambda (name)
                    (let ((value (getenv name)))
                      (and value (string-prefix-p "/" value) value))))
        (session (format "/run/user/%d" (user-uid))))
    (cond
     (memoryd-socket (expand-file-name memoryd-socket))
     ((getenv "MEMORYD_PATHS__SOCKET"))
     ((funcall absolute "XDG_RUNTIME_DIR")
      (concat (getenv "XDG_RUNTIME_DIR") "/memoryd/memoryd.sock"))
     ((file-accessible-directory-p session)
      (concat session "/memoryd/memoryd.sock"))
     (t (concat (or (funcall absolute "XDG_DATA_HOME")
                    (expand-file-name "~/.local/share"))
                "/memoryd/run/memoryd.sock")))))

(defun memoryd--open-socket ()
  "Connect to the daemon, or say what to do."
  (let ((path (memoryd-socket-path)))
    (condition-case nil
        (make-network-process
         :name "memoryd" :family 'local :service path :noquery t
         :coding 'utf-8-emacs-unix)
      (file-error
       (user-error "No memoryd daemon is listening on %s → Start it with \"memoryd run\""
                   path)))))

(defun memoryd--connect ()
  "Make a connection without a log: notes do not belong there."
  (let ((make (lambda (&rest log)
                (apply #'make-instance 'jsonrpc-process-connection
                       :name "memoryd" :process #'memoryd--open-socket log))))
    (condition-case nil
        (funcall make :events-buffer-config '(:size 0 :format full))
      (invalid-slot-name         ; jsonrpc.el before 1.0.24
       (funcall make :events-buffer-scrollback-size 0)))))

(defun memoryd--live-connection ()
  "Return the connection, made anew where the daemon was restarted."
  (accept-process-output nil 0)         ; notices a daemon that went
  (unless (and memoryd--connection (jsonrpc-running-p memoryd--connection))
    (memoryd-disconnect)
    (setq memoryd--connection (memoryd--connect)))
  memoryd--connection)

(defun memoryd-disconnect ()
  "End the connection to the daemon, if there is one."
  (interactive)
  (when memoryd--connection
    (when (jsonrpc-running-p memoryd--connection)
      (jsonrpc-shutdown memoryd--connection t))
    (setq memoryd--connection nil
          memoryd--roots nil)))

(defun memoryd--explain (err)
  "Signal the JSON-RPC error ERR as words for the user."
  (let* ((facts (cdr err))
         (message (or (alist-get 'jsonrpc-error-message facts)
                      (error-message-string err)))
         (hint (plist-get (alist-get 'jsonrpc-error-data facts) :hint)))
    (user-error "memoryd: %s%s" message (if hint (concat " → " hint) ""))))

(defun memoryd-request (method params)
  "Ask the daemon METHOD with PARAMS, a plist, and return its result.
Objects are plists, lists are vectors.  Everything that is asked
here may be asked twice, so it is when the daemon went meanwhile."
  (let* ((connection (memoryd--live-connection))
         (params (or params (make-hash-table))) ; nil would be null
         (ask (lambda (connection)
                (jsonrpc-request connection method params
                                 :timeout memoryd-timeout))))
    (condition-case err
        (funcall ask connection)
      (jsonrpc-error
       (if (jsonrpc-running-p connection)
           (memoryd--explain err)
         (condition-case err
             (funcall ask (memoryd--live-connection))
           (jsonrpc-error (memoryd--explain err))))))))

;;; Searching

(defun memoryd--file (hit)
  "Return the file that HIT stands in."
  ;; A daemon that read its configuration again may serve other workspaces.
  (unless (and (eq (car memoryd--roots) (memoryd--live-connection))
               (assoc (plist-get hit :workspace) (cdr memoryd--roots)))
    (let ((status (memoryd-request :status nil)))
      (setq memoryd--roots
            (cons memoryd--connection
                  (mapcar (lambda (workspace)
                            (cons (plist-get workspace :name)
                                  (plist-get workspace :root)))
                          (plist-get status :workspaces))))))
  (expand-file-name
   (plist-get hit :path)
   (cdr (assoc (plist-get hit :workspace) (cdr memoryd--roots)))))

(defun memoryd--best-line (hit)
  "Return the line of HIT that has most of what was asked for, and its text.
Of the best passage; its first line where none has any."
  (let* ((snippet (plist-get hit :snippet))
         (begin (plist-get hit :snippet_line))
         (first (plist-get (plist-get hit :best) :start_line))
         (last (plist-get (plist-get hit :best) :end_line))
         (best first)
         (most 0)
         (marks (make-hash-table)))
    (mapc (lambda (range)
            (let ((line begin))
              (dotimes (place (aref range 0))
                (when (eq (aref snippet place) ?\n)
                  (setq line (1+ line))))
              (puthash line (1+ (gethash line marks 0)) marks)))
          (plist-get hit :highlights))
    (dotimes (number (1+ (- last first)))
      (let ((count (gethash (+ first number) marks 0)))
        (when (> count most)
          (setq best (+ first number) most count))))
    (cons best
          (string-trim (or (nth (- best begin) (split-string snippet "\n")) "")))))

(defun memoryd-hits (query)
  "Search for QUERY and return the hits, best first, each a plist.
They are the results of the socket's method `search'."
  (let* ((answer (memoryd-request
                  :search
                  `( :query ,query :limit ,memoryd-limit
                     ,@(when memoryd-min-score `(:min_score ,memoryd-min-score))
                     ,@(when memoryd-scope `(:scope ,memoryd-scope)))))
         (hits (append (plist-get answer :results) nil))
         (absence (plist-get answer :absence))
         (doubt (plist-get answer :doubt))
         (degraded (plist-get answer :degraded)))
    (unless hits
      (user-error "Nothing found%s"
                  (if absence
                      (format ": %s%s" (plist-get absence :reason)
                              (if (plist-get absence :hint)
                                  (concat " → " (plist-get absence :hint)) ""))
                    "")))
    (when doubt
      (message "Doubtful: %s" (plist-get doubt :reason)))
    (when degraded
      (message "%s: %s"
               (if (equal (plist-get degraded :leg) "vector") "By keywords alone"
                 "Not all of it was searched")
               (plist-get degraded :reason)))
    hits))

(defun memoryd--candidates (hits)
  "Return an alist of what names each of HITS on one line, and the hit."
  (let* ((names (delete-dups (mapcar (lambda (hit) (plist-get hit :workspace)) hits)))
         (several (cdr names)))
    (mapcar (lambda (hit)
              (cons (concat (when several (concat (plist-get hit :workspace) ":"))
                            (plist-get hit :citation))
                    hit))
            hits)))

(defun memoryd--annotate (candidates name)
  "Return what to show behind NAME, one of CANDIDATES."
  (let ((hit (cdr (assoc name candidates))))
    (when hit
      (let ((heading (plist-get hit :heading)))
        (concat (propertize (format "  %.2f  " (plist-get hit :score))
                            'face 'completions-annotations)
                (unless (string-empty-p heading)
                  (concat (propertize heading 'face 'bold) "  "))
                (truncate-string-to-width
                 (cdr (memoryd--best-line hit)) 100 nil nil "…"))))))

(defun memoryd--table (candidates)
  "Return a completion table of CANDIDATES, in the order that they have."
  (lambda (string predicate action)
    (if (eq action 'metadata)
        `(metadata (category . memoryd-hit)
                   (annotation-function
                    . ,(lambda (name) (memoryd--annotate candidates name)))
                   (display-sort-function . identity)
                   (cycle-sort-function . identity))
      (complete-with-action action candidates string predicate))))

(defun memoryd-visit (hit)
  "Open the file of HIT at the line that answers best."
  (let ((file (memoryd--file hit))
        (line (car (memoryd--best-line hit))))
    (push-mark nil t)
    (find-file file)
    (widen)
    (goto-char (point-min))
    (forward-line (1- line))
    (unless noninteractive
      (recenter)
      (pulse-momentary-highlight-one-line (point)))))

;;;###autoload
(defun memoryd-search (query)
  "Search the memory for QUERY, choose one of the hits, and jump to its line.
Offers the region, or the word at point, to search for."
  (interactive
   (let ((offered (if (use-region-p)
                      (buffer-substring-no-properties (region-beginning) (region-end))
                    (thing-at-point 'word t))))
     (list (read-string (if offered (format "Search memory (%s): " offered)
                          "Search memory: ")
                        nil 'memoryd-search-history offered))))
  (when (string-blank-p query)
    (user-error "Nothing to search for"))
  (let* ((candidates (memoryd--candidates (memoryd-hits query)))
         (chosen (completing-read (format "Memory of %s: " query)
                                  (memoryd--table candidates) nil t)))
    (memoryd-visit (cdr (or (assoc chosen candidates) (car candidates))))))

;;; Status

(defun memoryd-status-lines ()
  "Return how the daemon is, as lines of text."
  (let* ((status (memoryd-request :status nil))
         (health (plist-get status :health)))
    (append
     (list (format "memoryd %s: %s" (plist-get status :version)
                   (plist-get health :state)))
     (mapcar (lambda (reason)
               (format "  %s%s" (plist-get reason :message)
                       (if (plist-get reason :hint)
                           (concat " → " (plist-get reason :hint)) "")))
             (plist-get health :reasons))
     (mapcar (lambda (workspace)
               (format "  %s (%s): %d files, %d pending, %d failed"
                       (plist-get workspace :name) (plist-get workspace :root)
                       (plist-get workspace :indexed) (plist-get workspace :pending)
                       (length (plist-get workspace :failed))))
             (plist-get status :workspaces)))))

;;;###autoload
(defun memoryd-status ()
  "Tell whether all is well, what is served, and what to do where it is not."
  (interactive)
  (message "%s" (string-join (memoryd-status-lines) "\n")))

(provide 'memoryd)
;;; memoryd.el ends here
