# Makes stats.json: what R says of the same data. `Rscript test/oracle/stats.R > test/oracle/stats.json`
# Only what Debian's r-base-core has. Every number has 15 digits, and the data are drawn with fixed seeds.
RNGversion("4.2.0")
set.seed(20261121)
num <- function(x) paste(ifelse(is.finite(x), sprintf("%.15g", x), "null"), collapse = ", ")
arr <- function(x) paste0("[", num(x), "]")
obj <- function(...) { f <- list(...); paste0("{", paste(sprintf("\"%s\": %s", names(f), unlist(f)), collapse = ", "), "}") }
rows <- function(items) paste0("[\n    ", paste(unlist(items), collapse = ",\n    "), "\n  ]")

# Distinct values: their ranks have no ties.
distinct <- function(n) round(rnorm(n, 70, 12), 3)

welch <- lapply(list(c(2, 2), c(3, 5), c(5, 5), c(8, 12), c(40, 7)), function(n) {
  a <- distinct(n[1]); b <- distinct(n[2]) - 4
  lapply(c(0.95, 0.98), function(level) {
    t <- t.test(b, a, conf.level = level)
    obj(a = arr(a), b = arr(b), level = num(1 - level), low = num(t$conf.int[1]), high = num(t$conf.int[2]))
  })
})
means <- lapply(c(2, 3, 5, 10, 50), function(n) {
  x <- round(rnorm(n, 60, 5), 3); t <- t.test(x)
  obj(x = arr(x), sd = num(sd(x)), low = num(t$conf.int[1]), high = num(t$conf.int[2]))
})
quantiles <- lapply(c(1, 1.7, 2, 4, 9.3, 30, 400), function(df) lapply(c(0.9, 0.975, 0.991, 0.9995), function(p)
  obj(p = num(p), df = num(df), t = num(qt(p, df)))))
wilson <- lapply(list(c(0, 1), c(1, 1), c(4, 5), c(0, 20), c(81, 263), c(15, 148), c(500, 1000)), function(x) {
  ci <- suppressWarnings(prop.test(x[1], x[2], correct = FALSE)$conf.int)
  obj(k = num(x[1]), n = num(x[2]), low = num(ci[1]), high = num(ci[2]))
})
fisher <- lapply(list(c(3, 4, 1, 4), c(10, 13, 2, 17), c(5, 5, 1, 5), c(0, 8, 5, 8), c(10, 10, 5, 10), c(4, 4, 4, 4), c(37, 90, 61, 110)),
  function(x) obj(a = arr(x[1:2]), b = arr(x[3:4]),
    p = num(fisher.test(matrix(c(x[1], x[2] - x[1], x[3], x[4] - x[3]), 2))$p.value)))
ranks <- lapply(list(c(3, 3), c(4, 4), c(5, 5), c(4, 7), c(8, 8), c(2, 12)), function(n) {
  a <- distinct(n[1]); b <- distinct(n[2]) + 9
  obj(a = arr(a), b = arr(b), p = num(wilcox.test(a, b, exact = TRUE)$p.value))
})
signed <- lapply(c(5, 6, 8, 12, 15), function(n) {
  d <- round(rnorm(n, 3, 6), 4)
  obj(d = arr(d), p = num(wilcox.test(d, exact = TRUE)$p.value))
})
# Every split, by R's own combn.
permutation <- lapply(list(c(3, 3), c(4, 4), c(5, 5), c(3, 7), c(8, 8)), function(n) {
  a <- round(rnorm(n[1], 70, 6)); b <- round(rnorm(n[2], 64, 6)); all <- c(a, b)
  splits <- combn(length(all), n[1], function(i) abs(mean(all[i]) - mean(all[-i])))
  obj(a = arr(a), b = arr(b), p = num(mean(splits >= abs(mean(a) - mean(b)) - 1e-9)))
})
holm <- lapply(c(2, 4, 6), function(n) { p <- round(runif(n)^3, 6); obj(p = arr(p), holm = arr(p.adjust(p, "holm"))) })
power <- lapply(c(2, 3, 5, 12, 64), function(n) lapply(c(0.3, 1, 2.5), function(delta)
  obj(n = num(n), delta = num(delta), power = num(power.t.test(n, delta, 1, strict = TRUE)$power))))
smallest <- lapply(c(2, 3, 5, 10, 30), function(n)
  obj(n = num(n), delta = num(power.t.test(n, power = 0.8, strict = TRUE, tol = 1e-13)$delta)))

# Error spending (Lan & DeMets 1983): the recursion of Armitage, McPherson & Rowe (1969) on a fine grid of the score process, Simpson's rule.
spend <- function(t) 0.05 * log(1 + (exp(1) - 1) * t)
levels <- function(t) {
  alpha <- spend(t); z <- numeric(0); grid <- NULL; density <- NULL; spent <- 0
  simpson <- function(n) { w <- rep(c(2, 4), length.out = n); w <- c(1, w[-1]); w[seq(2, n - 1, 2)] <- 4; w[seq(3, n - 2, 2)] <- 2; w[n] <- 1; w }
  for (k in seq_along(t)) {
    sd <- sqrt(t[k] - if (k > 1) t[k - 1] else 0)
    outside <- function(z) {
      b <- z * sqrt(t[k])
      if (k == 1) 2 * pnorm(-b, 0, sd)
      else sum(density * (pnorm(-b, grid, sd) + pnorm(b, grid, sd, lower.tail = FALSE)))
    }
    z[k] <- uniroot(function(z) outside(z) - (alpha[k] - spent), c(0.5, 5), tol = 1e-13)$root
    spent <- alpha[k]
    b <- z[k] * sqrt(t[k]); n <- 4001; x <- seq(-b, b, length.out = n); h <- x[2] - x[1]
    d <- if (k == 1) dnorm(x, 0, sd) else sapply(x, function(y) sum(density * dnorm(y, grid, sd)))
    grid <- x; density <- d * simpson(n) * h / 3
  }
  2 * pnorm(-z)
}
looks <- levels(c(5, 8, 12) / 12)


# Pairs: Student's t test, and its interval.
paired <- lapply(c(2, 3, 5), function(n) {
  d <- round(rnorm(n, -4, 5), 3); t <- t.test(d, conf.level = 0.98)
  obj(d = arr(d), level = num(0.02), p = num(t$p.value), low = num(t$conf.int[1]), high = num(t$conf.int[2]))
})
# Strata of unequal sizes: every combination of the splits of each.
strata <- function(sizes) lapply(sizes, function(n) list(a = round(rnorm(n[1], 70, 6)), b = round(rnorm(n[2], 66, 6)), weight = n[3]))
strataJson <- function(all) rows2(lapply(all, function(s) obj(a = arr(s$a), b = arr(s$b), weight = num(s$weight))))
rows2 <- function(items) paste0("[", paste(unlist(items), collapse = ", "), "]")
stratified <- lapply(list(
  list(c(3, 3, 0.5), c(3, 3, 0.5)),
  list(c(2, 4, 0.25), c(4, 2, 0.25), c(3, 3, 0.5)),
  list(c(5, 5, 0.5), c(2, 3, 0.5)),
  list(c(2, 2, 0.25), c(2, 2, 0.25), c(2, 2, 0.25), c(2, 2, 0.25))
), function(sizes) {
  all <- strata(sizes)
  splits <- lapply(all, function(s) { v <- c(s$a, s$b); combn(length(v), length(s$a), function(i) s$weight * (mean(v[-i]) - mean(v[i]))) })
  observed <- sum(sapply(all, function(s) s$weight * (mean(s$b) - mean(s$a))))
  totals <- Reduce(function(x, y) as.vector(outer(x, y, "+")), splits)
  obj(strata = strataJson(all), p = num(mean(abs(totals) >= abs(observed) - 1e-9)))
})
# The interval of their weighted difference: Welch's, with Satterthwaite's degrees of freedom over all sides of all strata.
stratifiedWelch <- lapply(list(list(c(3, 5, 0.5), c(4, 4, 0.5)), list(c(2, 4, 0.25), c(5, 5, 0.25), c(3, 3, 0.5))), function(sizes) {
  all <- strata(sizes)
  parts <- unlist(lapply(all, function(s) s$weight^2 * c(var(s$a) / length(s$a), var(s$b) / length(s$b))))
  freedom <- unlist(lapply(all, function(s) c(length(s$a), length(s$b)) - 1))
  value <- sum(sapply(all, function(s) s$weight * (mean(s$b) - mean(s$a))))
  half <- qt(0.975, sum(parts)^2 / sum(parts^2 / freedom)) * sqrt(sum(parts))
  obj(strata = strataJson(all), level = num(0.05), low = num(value - half), high = num(value + half))
})
# How runs ended: n, met and unfinished of sides a and b in each stratum. Runs are exchanged one by one, in every combination.
endings <- lapply(list(
  list(c(5, 5, 0, 5, 1, 1)),
  list(c(8, 6, 0, 8, 2, 4)),
  list(c(4, 4, 0, 4, 1, 2), c(4, 3, 0, 4, 1, 3)),
  list(c(3, 2, 1, 5, 3, 2), c(5, 4, 0, 3, 1, 1)),
  list(c(4, 2, 0, 4, 3, 0))
), function(sides) {
  each <- lapply(sides, function(x) {
    runs <- c(rep("met", x[2] + x[5]), rep("unfinished", x[3] + x[6]))
    runs <- c(runs, rep("missed", x[1] + x[4] - length(runs)))
    cbind(met = combn(length(runs), x[4], function(i) sum(runs[i] == "met")), unfinished = combn(length(runs), x[4], function(i) sum(runs[i] == "unfinished")))
  })
  joint <- Reduce(function(x, y) cbind(met = as.vector(outer(x[, 1], y[, 1], "+")), unfinished = as.vector(outer(x[, 2], y[, 2], "+"))), each)
  met <- sum(sapply(sides, function(x) x[5])); unfinished <- sum(sapply(sides, function(x) x[6]))
  lows <- ecdf(joint[, 1])(joint[, 1]); highs <- 1 - ecdf(joint[, 2])(joint[, 2] - 1)
  fell <- mean(joint[, 1] <= met); rose <- mean(joint[, 2] >= unfinished)
  if (length(sides) == 1) { # With one stratum each is Fisher's one-sided test.
    x <- sides[[1]]
    one <- fisher.test(matrix(c(x[5], x[4] - x[5], x[2], x[1] - x[2]), 2), alternative = "less")$p.value
    stopifnot(abs(one - fell) < 1e-9)
  }
  obj(sides = rows2(lapply(sides, arr)), fell = num(fell), rose = num(rose), adjusted = num(mean(pmin(lows, highs) <= min(fell, rose) * (1 + 1e-9))))
})

# Sign flips of many differences: every assignment, by the sums of both halves.
signs <- function(d) Reduce(function(x, y) as.vector(outer(x, c(-y, y), "+")), d, 0)
flips <- lapply(c(16, 18, 20), function(n) {
  d <- round(rnorm(n, 2, 6), 3)
  obj(d = arr(d), p = num(mean(abs(signs(d)) >= abs(sum(d)) - 1e-9)))
})
# Blocks of several prompts: the flips of all blocks, and the interval with Welch's degrees of freedom of 1947. With one prompt it is the t test's.
blocks <- lapply(list(c(6), c(3, 4), c(2, 2, 5), c(4, 4, 4)), function(sizes) {
  prompts <- lapply(sizes, function(n) round(rnorm(n, 4, 5), 3))
  weighted <- unlist(lapply(prompts, function(d) d / length(d)))
  means <- sapply(prompts, mean); e <- sapply(prompts, var) / sizes
  freedom <- max(1, min(sum(sizes - 1), sum(e)^2 / sum(e^2 / (sizes + 1)) - 2))
  half <- qt(0.975, freedom) * sqrt(sum(e)) / length(sizes)
  if (length(sizes) == 1) stopifnot(abs(t.test(prompts[[1]])$conf.int - (mean(means) + c(-half, half))) < 1e-9)
  obj(prompts = rows2(lapply(prompts, arr)), p = num(mean(abs(signs(weighted)) >= abs(sum(weighted)) - 1e-9)),
    low = num(mean(means) - half), high = num(mean(means) + half))
})
# Repeats to show a change: paired t tests.
plans <- lapply(list(c(5, 6, 0.05), c(5, 11, 0.05), c(5, 11, 0.0125), c(3, 8, 0.025), c(10, 9, 0.05)), function(x)
  obj(change = num(x[1]), sd = num(x[2]), level = num(x[3]),
    n = num(ceiling(power.t.test(delta = x[1], sd = x[2], sig.level = x[3], power = 0.8, type = "paired", strict = TRUE)$n))))
# Shares in strata: k and n of both sides in each.
shareStrata <- list(
  list(c(3, 5, 4, 5), c(1, 5, 3, 5)),
  list(c(2, 3, 3, 3), c(0, 3, 2, 3), c(1, 3, 1, 3), c(3, 3, 3, 3)),
  list(c(2, 8, 6, 8), c(5, 7, 6, 9), c(1, 4, 4, 6)),
  list(c(30, 60, 44, 61), c(10, 40, 19, 42))
)
exactStrata <- lapply(shareStrata, function(strata) {
  tables <- array(sapply(strata, function(x) c(x[1], x[2] - x[1], x[3], x[4] - x[3])), c(2, 2, length(strata)))
  obj(strata = rows2(lapply(strata, arr)), p = num(mantelhaen.test(tables, exact = TRUE)$p.value))
})
# Miettinen and Nurminen's interval: the most likely shares are the root of the derivative of the likelihood.
score <- function(strata, difference) {
  v <- sapply(strata, function(x) {
    slope <- function(q) x[1] / q - (x[2] - x[1]) / (1 - q) + x[3] / (q + difference) - (x[4] - x[3]) / (1 - q - difference)
    ends <- c(max(0, -difference), min(1, 1 - difference)) + c(1e-14, -1e-14)
    q <- if (slope(ends[1]) <= 0) ends[1] else if (slope(ends[2]) >= 0) ends[2] else uniroot(slope, ends, tol = 1e-15, maxiter = 10000)$root
    n <- x[2] + x[4]
    (q * (1 - q) / x[2] + (q + difference) * (1 - q - difference) / x[4]) * n / (n - 1)
  })
  sqrt(sum(v)) / length(strata)
}
shareIntervals <- lapply(c(shareStrata, list(list(c(0, 5, 5, 5)), list(c(9, 10, 3, 10)), list(c(4, 4, 4, 4)))), function(strata) {
  value <- mean(sapply(strata, function(x) x[3] / x[4] - x[1] / x[2])); z <- qnorm(0.975)
  end <- function(sign, size) uniroot(function(by) by - z * score(strata, value + sign * by), c(0, size), tol = 1e-15, maxiter = 10000)$root
  low <- if (value <= -1) -1 else value - end(-1, value + 1 - 1e-12)
  high <- if (value >= 1) 1 else value + end(1, 1 - value - 1e-12)
  obj(strata = rows2(lapply(strata, arr)), low = num(low), high = num(high))
})

cat("{\n", paste(sprintf("  \"%s\": %s", c("welch", "means", "quantiles", "wilson", "fisher", "ranks", "signed", "permutation", "holm", "power", "smallest", "looks", "paired", "stratified", "stratifiedWelch", "endings", "flips", "blocks", "plans", "exactStrata", "shareIntervals"),
  c(rows(welch), rows(means), rows(quantiles), rows(wilson), rows(fisher), rows(ranks), rows(signed), rows(permutation), rows(holm), rows(power), rows(smallest), arr(looks), rows(paired), rows(stratified), rows(stratifiedWelch), rows(endings), rows(flips), rows(blocks), rows(plans), rows(exactStrata), rows(shareIntervals))),
  collapse = ",\n"), "\n}\n", sep = "")
