/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 36: capital letters before small ones. */
/* flags: -q -xaggsortkey */
BEGIN
{
	@["b"] = count();
	@["B"] = count();
	@["ab"] = count();
	@["a"] = count();
	exit(0);
}
/* output:

  B                                                                 1
  a                                                                 1
  ab                                                                1
  b                                                                 1
*/
