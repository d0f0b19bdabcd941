# Computes the result of an experiment from its exported runs: `Rscript test/oracle/experiment.R runs.csv BASE ARM…`
# Independent of evald's code. Prints JSON with the numbers of the API before they are rounded. Needs only Debian's r-base-core.
options(digits.secs = 0, warn = 1)
args <- commandArgs(TRUE)
runs <- read.csv(args[1], colClasses = "character", na.strings = "")
arms <- args[-1]
# An apostrophe keeps spreadsheets from reading text as a formula.
runs$arm <- sub("^'(?=[=+@-])", "", runs$arm, perl = TRUE)
for (name in c("block", "score", "costUsd", "seconds")) runs[[name]] <- as.numeric(runs[[name]])
for (name in c("success", "shouldTrigger", "triggered")) runs[[name]] <- runs[[name]] == "true"
valid <- runs[is.na(runs$excluded), ]
level <- 0.05
z <- qnorm(0.975)
minPrompts <- 6

num <- function(x) if (length(x) == 0 || is.na(x) || !is.finite(x)) "null" else sprintf("%.17g", x)
obj <- function(...) { f <- list(...); paste0("{", paste(sprintf("\"%s\": %s", names(f), unlist(f)), collapse = ", "), "}") }
list_ <- function(items) paste0("[", paste(unlist(items), collapse = ", "), "]")

# Differences within blocks, by prompt.
differences <- function(base, arm, column, f = identity) {
  pairs <- merge(valid[valid$arm == base, ], valid[valid$arm == arm, ], by = c("promptId", "block"), suffixes = c(".a", ".b"))
  d <- f(pairs[[paste0(column, ".b")]]) - f(pairs[[paste0(column, ".a")]])
  ok <- is.finite(d)
  split(d[ok], pairs$promptId[ok])
}

# Two-sided sign-flip test: all assignments.
flip <- function(d) {
  sums <- 0
  for (x in d) sums <- c(sums + x, sums - x)
  list(p = mean(abs(sums) >= abs(sum(d)) - 1e-9), smallest = min(1, 2 / 2^length(d)))
}

# Student's interval of the mean of the prompts' means, from the spread within prompts (Welch 1947, equation 28).
within <- function(groups) {
  sizes <- lengths(groups); value <- mean(sapply(groups, mean)); df <- sum(sizes - 1)
  if (df == 0) { x <- unlist(groups); return(c(value, value + c(-1, 1) * qt(0.975, length(x) - 1) * sd(x) / sqrt(length(x)))) }
  v <- if (any(sizes == 1)) rep(sum(sapply(groups, function(x) sum((x - mean(x))^2))) / df, length(groups)) else sapply(groups, var)
  e <- v / sizes
  if (sum(e) == 0) return(rep(value, 3))
  freedom <- if (any(sizes == 1)) df else max(1, min(df, sum(e)^2 / sum(e^2 / (sizes + 1)) - 2))
  value + c(0, -1, 1) * qt(0.975, freedom) * sqrt(sum(e)) / length(groups)
}

blocks <- function(groups, test_level) {
  k <- length(groups); weighted <- unlist(lapply(groups, function(x) x / (k * length(x))))
  if (k < minPrompts) return(c(flip(weighted), list(delta = within(groups))))
  means <- sapply(groups, mean); t <- t.test(means)
  delta <- c(mean(means), t$conf.int)
  flips <- flip(means)
  if (flips$smallest < test_level) return(c(flips, list(delta = delta)))
  inner <- flip(weighted)
  list(p = max(inner$p, t$p.value), smallest = inner$smallest, delta = delta)
}

# Judged runs by prompt: a matrix of a.k, a.n, b.k, b.n.
strata <- function(base, arm) {
  judged <- valid[!is.na(valid$success), ]
  rows <- lapply(split(judged, judged$promptId), function(x) {
    a <- x$success[x$arm == base]; b <- x$success[x$arm == arm]
    c(sum(a), length(a), sum(b), length(b))
  })
  m <- do.call(rbind, rows)
  m[m[, 2] > 0 & m[, 4] > 0, , drop = FALSE]
}

smallest_p <- function(m) {
  chances <- 1
  for (i in seq_len(nrow(m))) {
    k <- m[i, 1] + m[i, 3]; x <- max(0, k - m[i, 2]):min(m[i, 4], k)
    one <- dhyper(x, m[i, 4], m[i, 2], k)
    sums <- outer(seq_along(chances), seq_along(one), "+")
    chances <- as.vector(tapply(outer(chances, one), sums, sum))
  }
  least <- min(chances)
  sum(chances[chances <= least * (1 + 1e-7)])
}
exact_p <- function(m) {
  tables <- apply(m, 1, function(r) c(r[3], r[1], r[4] - r[3], r[2] - r[1]))
  if (nrow(m) == 1) fisher.test(matrix(tables, 2))$p.value
  else mantelhaen.test(array(tables, c(2, 2, nrow(m))), exact = TRUE)$p.value
}

# Miettinen and Nurminen (1985), with the most likely shares found as the root of the score.
variance_at <- function(r, d) {
  ka <- r[1]; na <- r[2]; kb <- r[3]; nb <- r[4]
  lo <- max(0, -d); hi <- min(1, 1 - d); n <- na + nb
  slope <- function(p) (if (ka > 0) ka / p else 0) - (if (ka < na) (na - ka) / (1 - p) else 0) +
    (if (kb > 0) kb / (p + d) else 0) - (if (kb < nb) (nb - kb) / (1 - p - d) else 0)
  # The likelihood is concave: its slope falls from one end to the other.
  edge <- (hi - lo) * 1e-13
  p <- if (slope(lo + edge) <= 0) lo else if (slope(hi - edge) >= 0) hi else
    uniroot(slope, c(lo + edge, hi - edge), tol = 1e-16, maxiter = 10000)$root
  q <- p + d
  (q * (1 - q) / nb + p * (1 - p) / na) * n / (n - 1)
}
rate <- function(m) {
  value <- mean(m[, 3] / m[, 4] - m[, 1] / m[, 2])
  gap <- function(d) (value - d)^2 - z^2 * sum(apply(m, 1, variance_at, d)) / nrow(m)^2
  # The first sign change from the value outwards.
  bound <- function(to) {
    grid <- seq(value, to, length.out = 101); grid <- grid[-length(grid)]
    at <- which(sapply(grid, gap) > 0)[1]
    if (is.na(at)) to else uniroot(gap, sort(grid[at - 1:0]), tol = 1e-15)$root
  }
  c(value, bound(-1), bound(1))
}

compared <- lapply(arms[-1], function(arm) strata(arms[1], arm))
tested <- sum(sapply(compared, smallest_p) < level)
test_level <- level / max(1, length(arms) - 1 + tested)
contrasts <- lapply(seq_along(arms[-1]), function(i) {
  arm <- arms[i + 1]; m <- compared[[i]]
  list(arm = arm, score = blocks(differences(arms[1], arm, "score"), test_level), m = m, rate = rate(m),
       success_p = exact_p(m), success_smallest = smallest_p(m),
       cost = blocks(differences(arms[1], arm, "costUsd", log), test_level),
       seconds = blocks(differences(arms[1], arm, "seconds", log), test_level))
})
p <- unlist(lapply(contrasts, function(c) c(c$score$p, c$success_p)))
smallest <- unlist(lapply(contrasts, function(c) c(c$score$smallest, c$success_smallest)))
adjusted <- rep(1, length(p)); counts <- smallest < level
adjusted[counts] <- p.adjust(p[counts], "holm")

wilson <- function(k, n) {
  if (n == 0) return(rep(NA, 3))
  # The shares p with (k/n - p)^2 = z^2 p (1 - p) / n.
  s <- k / n; r <- sort(Re(polyroot(c(s^2, -2 * s - z^2 / n, 1 + z^2 / n))))
  c(s, r)
}
# Rao and Scott (1992).
clustered <- function(k, n) {
  k <- k[n > 0]; n <- n[n > 0]; N <- sum(n)
  if (N == 0) return(rep(NA, 3))
  s <- sum(k) / N; largest <- sum(n^2) / N; m <- length(n)
  d <- if (m < 2 || s == 0 || s == 1) largest else if (all(n == 1)) 1 else
    min(largest, max(1, m / (m - 1) * sum((k - s * n)^2) / N^2 / (s * (1 - s) / N)))
  wilson(sum(k) / d, N / d)
}
interval <- function(x) if (is.na(x[1])) "null" else obj(value = num(x[1]), low = num(max(0, x[2])), high = num(min(1, x[3])))

summaries <- lapply(arms, function(arm) {
  x <- valid[valid$arm == arm, ]; s <- x[!is.na(x$score), ]; j <- x$success[!is.na(x$success)]
  mean_ <- within(split(s$score, s$promptId)); w <- wilson(sum(j), length(j))
  obj(arm = dQuote(arm, FALSE), n = nrow(x), meanScore = num(mean_[1]), low = num(max(0, mean_[2])), high = num(min(100, mean_[3])),
      successes = sum(j), judged = length(j), successLow = num(max(0, w[2])), successHigh = num(min(1, w[3])))
})
known <- valid[!is.na(valid$shouldTrigger) & !is.na(valid$triggered), ]
triggering <- lapply(arms[arms %in% known$arm], function(arm) {
  x <- known[known$arm == arm, ]
  by <- function(should, used) as.vector(tapply(x$shouldTrigger == should & x$triggered == used, x$promptId, sum))
  tp <- by(TRUE, TRUE); fp <- by(FALSE, TRUE); fn <- by(TRUE, FALSE); tn <- by(FALSE, FALSE)
  j <- clustered(tp, tp + fp + fn)
  obj(arm = dQuote(arm, FALSE), truePositives = sum(tp), falsePositives = sum(fp), falseNegatives = sum(fn), trueNegatives = sum(tn),
      precision = interval(clustered(tp, tp + fp)), recall = interval(clustered(tp, tp + fn)), f1 = interval(2 * j / (1 + j)))
})
cat(obj(
  contrasts = list_(lapply(seq_along(contrasts), function(i) {
    c <- contrasts[[i]]; ratio <- function(b) obj(ratio = num(exp(b$delta[1])), low = num(exp(b$delta[2])), high = num(exp(b$delta[3])), p = num(b$p))
    obj(arm = dQuote(c$arm, FALSE),
        score = obj(delta = num(c$score$delta[1]), low = num(c$score$delta[2]), high = num(c$score$delta[3]), p = num(c$score$p), adjustedP = num(adjusted[2 * i - 1])),
        success = obj(difference = num(c$rate[1]), low = num(c$rate[2]), high = num(c$rate[3]), p = num(c$success_p), adjustedP = num(adjusted[2 * i])),
        cost = ratio(c$cost), seconds = ratio(c$seconds))
  })),
  arms = list_(summaries), triggering = list_(triggering)), "\n")
