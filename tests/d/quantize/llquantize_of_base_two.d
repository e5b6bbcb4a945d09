/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: a factor of 2 with 2 steps. */
BEGIN
{
	@ = llquantize(5, 2, 0, 3, 2);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               2 |                                         0        
               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               8 |                                         0        

*/
