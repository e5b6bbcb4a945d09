/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: tables of two keys, sorted by their sums. */
BEGIN
{
	@["x"] = lquantize(1, 0, 3);
	@["y"] = lquantize(2, 0, 3);
	exit(0);
}
/* output:

  x                                                 
           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               2 |                                         0        

  y                                                 
           value  ------------- Distribution ------------- count    
               1 |                                         0        
               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
            >= 3 |                                         0        

*/
