/** read_json(text) → the table of a JSON text of the record, or an empty one where it is damaged, so that the others of its hash stay of use. */
export const readJson = /* lua */ `
local function read_json(text)
  local is_whole, value = pcall(cjson.decode, text)
  return is_whole and type(value) == 'table' and value or {}
end
`;
