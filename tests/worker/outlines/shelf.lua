local function first(a) -- DEF function first
end
M.second = function(a) -- DEF function M.second
end
