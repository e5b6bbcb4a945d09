/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 35: a key longer than the column is printed whole. */
BEGIN
{
	@["a key of more than fifty characters, which is wider than its column"] = count();
	exit(0);
}
/* output:

  a key of more than fifty characters, which is wider than its column                1
*/
