/** Menu items: name, path and the key that opens it after `g`. */
export const menuItems = [
  ["Home", "/", "h"],
  ["Prompts", "/prompts", "p"],
  ["Runs", "/runs", "u"],
  ["Reports", "/reports", "r"],
  ["Friction", "/friction", "f"],
  ["Trends", "/trends", "t"],
  ["Gates", "/gates", "a"],
  ["Experiments", "/experiments", "e"],
  ["Calibration", "/calibration", "c"],
  ["Spending", "/spending", "m"],
  ["Providers", "/providers", "d"],
  ["Settings", "/settings", "s"],
] as const;
